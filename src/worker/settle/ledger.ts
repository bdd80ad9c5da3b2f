import { pause } from '../routing/budget.ts'
import { StorageUnavailable, type Database } from '../storage/database.ts'
import type { SettlementEntry, StoredReceipt } from '../storage/ledger-operations.ts'
import type { Admission } from './admit.ts'
import type { Alerts } from './alerts.ts'
import { ClaimLost } from './claims.ts'
import type { Cost } from './price.ts'
import { insertEvidence, lockCustomer, retainUntil } from './settle-sql.ts'
import { ledgerOf } from './sql-ledger.ts'

/** The settlement of an exchange: its bill, and its receipt if it has one. */
export interface Settlement {
  /** Also the id of the usage row; settling it again changes nothing. */
  readonly requestId: string
  readonly admission: Pick<Admission, 'customerId' | 'keyPrefix' | 'claim'>
  readonly row: UsageEntry
  readonly receipt: StoredReceipt | null
  /** The sealed answer for repeats of a request with a claim; null: it is not kept. */
  readonly answer?: string | null
  /** The thresholds to report, where the operator has webhooks. */
  readonly alerts?: Alerts | undefined
}

export interface UsageEntry {
  /** Id of the concrete route. */
  readonly model: string
  readonly modality: 'chat' | 'transcription' | 'embedding'
  readonly provider: string
  readonly region: string | null
  /** The duration the provider reported, in seconds. */
  readonly audioSeconds: number | null
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cost: Cost
  /** Whether the provider reported more usage than the request can have caused; the maximum is billed. */
  readonly usageCapped: boolean
  readonly failover: boolean
  /** The row is never dated before the customer's latest one, even where the clocks of two instances differ. */
  readonly createdAtMs: number
}

/**
 * Settles a request in one atomic batch: balance, usage row, receipt, reservation. It is billed even if the
 * reservation has lapsed, and the balance may become negative.
 * @returns the evidence that the receipt names and that must still be stored with `storeEvidence`
 * @throws ClaimLost when another request has taken over the claim; nothing is stored then
 * @throws StorageUnavailable when the storage does not answer in any attempt; it is then unknown whether it was stored
 */
export async function commitSettlement(
  db: Database,
  settlement: Settlement,
  retry: Retry = ONE_RETRY,
): Promise<{ readonly missingEvidence: readonly string[] }> {
  const entry = entryOf(settlement)
  const { outcome, missingEvidence } = await untilAnswered(() => ledgerOf(db).settle(entry), retry)
  if (outcome === 'no_account') throw new Error('internal error: the customer has no account')
  if (outcome === 'claim_lost') throw new ClaimLost()
  return { missingEvidence }
}

/** Converts a settlement to the form that storage engines carry out. */
export function entryOf({
  requestId,
  admission,
  row,
  receipt,
  answer,
  alerts,
}: Settlement): SettlementEntry {
  const { nano, billingUnit, discountPct, usdEur } = row.cost
  return {
    requestId,
    customerId: admission.customerId,
    keyPrefix: admission.keyPrefix,
    claim: admission.claim ?? null,
    usage: {
      model: row.model,
      modality: row.modality,
      provider: row.provider,
      region: row.region,
      audioSeconds: row.audioSeconds,
      promptTokens: row.promptTokens,
      completionTokens: row.completionTokens,
      failover: row.failover,
      createdAtMs: row.createdAtMs,
      costNano: nano.toString(),
      billingUnit,
      discountPct,
      usdEur,
      capped: row.usageCapped,
    },
    receipt,
    answer: answer ?? null,
    alertBelowNano: alerts === undefined ? null : alerts.balanceBelowNano.toString(),
  }
}

/** When an operation is tried again while the storage does not answer. */
export interface Retry {
  /** The pause before each further attempt, ms. */
  readonly pausesMs: readonly number[]
  readonly wait: (ms: number) => Promise<void>
  /** Ms. */
  readonly now: () => number
}

/** No retry: the caller tries again. */
export const NO_RETRY: Retry = { pausesMs: [], wait: pause, now: () => 0 }

/** One retry at once: for operations that are tried again later in any case. */
export const ONE_RETRY: Retry = { pausesMs: [0], wait: pause, now: () => 0 }

/** Retries at once, for a lost connection, and then for longer than a supervisor takes to restart a process that died. */
export function untilRestarted(now: () => number): Retry {
  return { pausesMs: [0, 500, 1_000, 2_000, 3_000, 4_000], wait: pause, now }
}

/**
 * After a retry that took this long no other is made, ms: the storage is not restarting, and the settlements of others may
 * wait for this one.
 */
const SLOW_MS = 5_000

/**
 * Retries an idempotent operation while the storage does not answer. An earlier attempt may have been committed although its
 * result was lost; the client has then been billed, so its answer must not be withheld.
 * @throws what the last attempt throws
 */
export function untilAnswered<Result>(
  operation: () => Promise<Result>,
  retry: Retry,
): Promise<Result> {
  return retry.pausesMs.length === 0 ? operation() : repeated(operation, retry)
}

async function repeated<Result>(
  operation: () => Promise<Result>,
  { pausesMs, wait, now }: Retry,
): Promise<Result> {
  for (const [repeat, ms] of pausesMs.entries()) {
    const begunAt = now()
    try {
      return await operation()
    } catch (error) {
      const isSlow = repeat > 0 && Math.abs(now() - begunAt) >= SLOW_MS
      if (!(error instanceof StorageUnavailable) || isSlow) throw error
    }
    if (ms > 0) await wait(ms)
  }
  return await operation()
}

/** Stores a piece of evidence for the customer's receipts that name it. Idempotent. */
export async function storeEvidence(
  db: Database,
  evidence: {
    readonly customerId: string
    readonly sha256: string
    /** Standard base64 of the exact bytes. */
    readonly dataB64: string
    /** When the receipt that names it expires, ms. */
    readonly expiresAtMs: number
  },
): Promise<void> {
  const { customerId, sha256, dataB64, expiresAtMs } = evidence
  const stored = { customerId, sha256, dataB64, expiresAt: retainUntil(expiresAtMs) }
  if (db.ledger?.storeEvidence !== undefined) return db.ledger.storeEvidence(stored)
  // The last step of an erasure takes this lock, too, and so runs entirely before or entirely after this batch.
  await db.batch([lockCustomer(customerId), insertEvidence(stored)])
}

/**
 * Releases the reservation of a request that costs nothing. Idempotent; no effect when there is none.
 * @returns whether there was one
 */
export function releaseReservation(db: Database, requestId: string): Promise<boolean> {
  return ledgerOf(db).release(requestId)
}
