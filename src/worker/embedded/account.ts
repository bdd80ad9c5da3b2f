import type { LimitReset } from '../settle/key-limits.ts'
import type { HeldReservation } from '../storage/ledger-engine.ts'

/**
 * A customer's account in memory, with what admission and settlement need. The memory is authoritative; each fold writes its
 * changes to the tables. Money is nano-EUR, times are ms since the epoch.
 */
export interface Account {
  readonly customerId: string
  readonly name: string
  readonly plan: string
  readonly prepaid: boolean
  readonly receiptRetentionDays: number | null
  readonly suspended: boolean
  /** The customer's own thresholds for alerts; null: the service's. */
  readonly alertBalanceNano: bigint | null
  readonly alertKeyLimitPct: number | null
  balance: bigint
  reserved: bigint
  usageCount: number
  lastUsageAt: number
  readonly keys: Map<string, AccountKey>
  /** Open reservations by request. */
  readonly open: Map<string, Reservation>
  /** Requests that have ended but whose reservation is still in the table. */
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
  /** Whether the request is known not to have been settled before its admission; if false, only the tables can tell. */
  readonly surelyNew: boolean
  /** Whether the table has the reservation. */
  stored: boolean
}

/** The reservation in the form that a new ledger instance takes over. */
export function heldBy(
  requestId: string,
  customerId: string,
  { keyPrefix, amount, createdAt, expiresAt }: Reservation,
): HeldReservation {
  return { requestId, customerId, keyPrefix, amount, createdAt, expiresAt }
}
