import type { LimitReset } from '../settle/key-limits.ts'
import type { HeldReservation } from '../storage/ledger-engine.ts'

/**
 * A customer as admission and settlement need it, in memory. The memory is the truth; the tables follow it with each fold.
 * Money is nano-EUR, times are ms.
 */
export interface Account {
  readonly customerId: string
  readonly name: string
  readonly plan: string
  readonly prepaid: boolean
  readonly receiptRetentionDays: number | null
  readonly suspended: boolean
  /** The customer's own thresholds of reports; null: the service's. */
  readonly alertBalanceNano: bigint | null
  readonly alertKeyLimitPct: number | null
  balance: bigint
  reserved: bigint
  usageCount: number
  lastUsageAt: number
  readonly keys: Map<string, AccountKey>
  /** Open reservations by request. */
  readonly open: Map<string, Reservation>
  /** Requests that have ended and whose reservation the table still has. */
  readonly ended: Set<string>
  /** When each stored piece of evidence expires; undefined until a receipt names one. */
  evidence: Map<string, number> | undefined
}

/** A key that exists, or was deleted. */
export interface AccountKey {
  readonly keyPrefix: string
  readonly keyHash: string
  readonly name: string
  readonly deleted: boolean
  readonly expiresAt: number | null
  readonly models: string | null
  readonly minAttestation: string | null
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrentRequests: number | null
  readonly limitNano: bigint | null
  readonly limitReset: LimitReset
  /** When each former secret of a rotated key expires, by its hash. */
  readonly formerSecrets: ReadonlyMap<string, number>
  spentNano: bigint
  spentAt: number
  windowStartedAt: number
  windowRequests: number
  windowTokens: number
}

export interface Reservation {
  readonly keyPrefix: string
  readonly amount: bigint
  readonly createdAt: number
  readonly expiresAt: number
  /** Whether its request was certainly not settled before it was reserved; if not, the tables tell. */
  readonly surelyNew: boolean
  /** Whether the table has it. */
  stored: boolean
}

/** A reservation as another ledger takes it over. */
export function heldBy(
  requestId: string,
  customerId: string,
  { keyPrefix, amount, createdAt, expiresAt }: Reservation,
): HeldReservation {
  return { requestId, customerId, keyPrefix, amount, createdAt, expiresAt }
}
