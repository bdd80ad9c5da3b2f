import type { ReceiptClaims } from '../protocol/receipt.ts'
import type { Check } from '../verify/check.ts'

/** The result of verifying the receipt of one answer. */
export interface ReceiptOutcome {
  /** Whether the receipt exists and all of its checks hold. */
  readonly ok: boolean
  /** Path of the request. */
  readonly path: string
  readonly id: string | undefined
  /** The compact JWS, to be stored as proof. */
  readonly receipt: string | undefined
  readonly checks: readonly Check[]
  /** Names of the failed checks; `receipt_missing` or `receipt_unavailable` where there was nothing to check. */
  readonly failed: readonly string[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Whether a simulated platform is part of its proof, which then proves nothing about any machine. */
  readonly simulated: boolean
  /** Present only where its signature is verified. */
  readonly claims: ReceiptClaims | undefined
}
