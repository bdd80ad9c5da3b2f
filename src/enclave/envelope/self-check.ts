import type { ServedEnvelope } from './build-envelope.ts'

/** What the daemon's own verification of its envelope found. */
export interface SelfCheck {
  readonly verified: boolean
  /** Names of failed checks. */
  readonly failed: readonly string[]
  /** Unix seconds. */
  readonly verifiedAt: number
}

export async function checkOwnEnvelope(_envelope: ServedEnvelope, now: number): Promise<SelfCheck> {
  return { verified: false, failed: ['not implemented'], verifiedAt: Math.floor(now / 1000) }
}
