import { StorageUnavailable, type Database, type Row, type Statement } from '../storage/database.ts'
import { textOf } from '../storage/row.ts'
import { int64, list, raw, real, small, sql, text } from '../storage/sql.ts'
import type { Admission } from './admit.ts'
import { alertStatements, type Alerts } from './alerts.ts'
import { ClaimLost, completeClaim, dropClaim, readOwner, takenByAnother } from './claims.ts'
import { addSpent } from './key-limits.ts'
import { UNLIMITED } from './plan-terms.ts'
import type { Cost } from './price.ts'

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

export interface StoredReceipt {
  readonly id: string
  readonly jws: string
  /** SHA-256 of the compact JWS string, lowercase hex. */
  readonly sha256: string
  readonly kid: string
  readonly expiresAtMs: number
  /** SHA-256 of each piece of evidence that the receipt names by digest. */
  readonly evidenceRefs: readonly string[]
}

/**
 * Settles a request in one atomic batch: balance, usage row, receipt, reservation. It is billed even if the
 * reservation has lapsed, and the balance may become negative.
 * @returns the evidence that the receipt names and that must still be stored with `storeEvidence`
 * @throws ClaimLost when another request has taken over the claim; nothing is stored then
 * @throws StorageUnavailable when the storage does not answer
 */
export async function commitSettlement(
  db: Database,
  settlement: Settlement,
): Promise<{ readonly missingEvidence: readonly string[] }> {
  const { receipt, admission } = settlement
  const statements = [
    lockCustomer(settlement),
    ...claimOwner(settlement),
    bill(settlement),
    writeUsage(settlement),
    countOnKey(settlement),
    ...alerts(settlement),
    closeReservation(settlement),
    ...completion(settlement),
    ...(receipt === null ? [] : writeReceipt(settlement, receipt)),
  ]
  const rows = await batchWithOneRetry(db, statements)
  if (rows[0]?.length !== 1) throw new Error('internal error: the customer has no account')
  const owner = admission.claim === undefined ? undefined : rows[1]?.[0]
  if (owner && textOf(owner, 'request_id') !== settlement.requestId) throw new ClaimLost()
  if (receipt === null || receipt.evidenceRefs.length === 0) return { missingEvidence: [] }
  const held = new Set((rows.at(-1) ?? []).map((row: Row) => textOf(row, 'sha256')))
  return { missingEvidence: receipt.evidenceRefs.filter((ref) => !held.has(ref)) }
}

/**
 * Runs an idempotent batch again when the storage did not answer. The first one may have been committed although its
 * result was lost; the client has then been billed, so its answer must not be withheld.
 */
async function batchWithOneRetry(
  db: Database,
  statements: readonly Statement[],
): ReturnType<Database['batch']> {
  try {
    return await db.batch(statements)
  } catch (error) {
    if (error instanceof StorageUnavailable) return db.batch(statements)
    throw error
  }
}

const HOUR_MS = 3_600_000

/**
 * Evidence expires at the end of the hour in which the last receipt that names it expires. Rounding up avoids
 * rewriting its large row for every receipt.
 */
function retainUntil(expiresAtMs: number): number {
  return Math.ceil(expiresAtMs / HOUR_MS) * HOUR_MS
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
  await db.batch([
    sql`INSERT INTO evidence (customer_id, sha256, data_b64, expires_at)
      VALUES (${customerId}, ${sha256}, ${dataB64}, ${int64(retainUntil(expiresAtMs))})
      ON CONFLICT (customer_id, sha256) DO UPDATE SET expires_at = CASE
        WHEN excluded.expires_at > evidence.expires_at THEN excluded.expires_at
        ELSE evidence.expires_at END`,
  ])
}

/**
 * Releases the reservation of a request that costs nothing. Idempotent; no effect when there is none.
 * @returns whether there was one
 */
export async function releaseReservation(db: Database, requestId: string): Promise<boolean> {
  const own = sql`(SELECT customer_id FROM reservations WHERE request_id = ${requestId})`
  const amount = sql`(SELECT amount_nano FROM reservations WHERE request_id = ${requestId})`
  const rows = await db.batch([
    sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${own}`,
    sql`UPDATE customers SET reserved_nano = reserved_nano - ${amount} WHERE customer_id = ${own}`,
    dropClaim(requestId),
    sql`DELETE FROM reservations WHERE request_id = ${requestId} RETURNING request_id`,
  ])
  return rows.at(-1)?.length === 1
}

/** Locks the customer, so that on PostgreSQL the statements that follow see what earlier holders committed. */
function lockCustomer({ admission }: Settlement): Statement {
  return sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${admission.customerId}
    RETURNING customer_id`
}

/** Unless the request already has its row: charges the cost, removes the reservation, numbers the row. */
function bill({ requestId, admission, row }: Settlement): Statement {
  const now = int64(row.createdAtMs)
  return sql`UPDATE customers SET lock_request_id = ${requestId},
      balance_nano = balance_nano - ${int64(row.cost.nano)},
      reserved_nano = reserved_nano - COALESCE(
        (SELECT amount_nano FROM reservations WHERE request_id = ${requestId}), 0),
      usage_count = usage_count + 1,
      last_usage_at = CASE WHEN last_usage_at > ${now} THEN last_usage_at ELSE ${now} END
    WHERE customer_id = ${admission.customerId}
      AND NOT EXISTS (SELECT 1 FROM usage WHERE id = ${requestId})
      AND NOT ${isFenced(requestId, admission)}`
}

/** The owner of the claim now that the customer is locked, where there is a claim. */
function claimOwner({ admission: { claim, customerId } }: Settlement): readonly Statement[] {
  return claim === undefined ? [] : [readOwner(claim, customerId)]
}

/** Whether another request has taken over the claim of this one. */
function isFenced(requestId: string, { customerId, claim }: Settlement['admission']): Statement {
  return claim === undefined ? raw('(1 = 0)') : takenByAnother(claim, { requestId, customerId })
}

/** The claim with its answer. */
function completion({ requestId, admission, answer, row }: Settlement): readonly Statement[] {
  const { claim, customerId } = admission
  if (claim === undefined) return []
  const end = { claim, requestId, customerId, answer: answer ?? null, now: row.createdAtMs }
  return completeClaim(end)
}

function writeUsage({ requestId, admission, row, receipt }: Settlement): Statement {
  const { cost } = row
  return sql`INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality,
      provider, region, billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano,
      discount_pct, usd_eur, receipt_id, failover, capped)
    SELECT lock_request_id, customer_id, usage_count, last_usage_at, ${text(admission.keyPrefix)},
      ${text(row.model)}, ${text(row.modality)}, ${text(row.provider)}, ${text(row.region)},
      ${text(cost.billingUnit)}, ${real(row.audioSeconds)}, ${int64(row.promptTokens)},
      ${int64(row.completionTokens)}, ${int64(cost.nano)}, ${small(cost.discountPct)},
      ${text(cost.usdEur)}, ${text(receipt?.id ?? null)}, ${small(row.failover ? 1 : 0)},
      ${small(row.usageCapped ? 1 : 0)}
    FROM customers WHERE customer_id = ${admission.customerId} AND lock_request_id = ${requestId}`
}

/** Adds cost and tokens to those of the key, for its own limits. */
function countOnKey({ requestId, admission, row }: Settlement): Statement {
  const { customerId, keyPrefix } = admission
  const now = row.createdAtMs
  const tokens = row.promptTokens + row.completionTokens
  return sql`UPDATE api_keys SET ${addSpent(now, row.cost.nano)},
      window_tokens = CASE WHEN window_tokens > ${int64(UNLIMITED - tokens)} THEN ${int64(UNLIMITED)}
        ELSE window_tokens + ${int64(tokens)} END
    WHERE customer_id = ${customerId} AND key_prefix = ${keyPrefix} AND EXISTS (
      SELECT 1 FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId})`
}

/** Reports the thresholds that this bill crosses. */
function alerts({ requestId, admission, row, alerts: wanted }: Settlement): readonly Statement[] {
  if (wanted === undefined) return []
  const { customerId, keyPrefix } = admission
  const [costNano, now] = [row.cost.nano, row.createdAtMs]
  return alertStatements(wanted, { requestId, customerId, keyPrefix, costNano, now })
}

function closeReservation({ requestId, admission }: Settlement): Statement {
  return sql`DELETE FROM reservations WHERE request_id = ${requestId} AND EXISTS (
    SELECT 1 FROM customers WHERE customer_id = ${admission.customerId} AND lock_request_id = ${requestId})`
}

/**
 * Writes the receipt's row, extends the retention of evidence it shares with others, and reads which evidence is
 * present.
 */
function writeReceipt(
  { requestId, admission, row }: Settlement,
  receipt: StoredReceipt,
): readonly Statement[] {
  const { customerId } = admission
  const refs = receipt.evidenceRefs
  const expiry = int64(receipt.expiresAtMs)
  const insert = sql`INSERT INTO receipts (customer_id, receipt_id, jws, sha256, kid, evidence_refs,
      model, provider, prompt_tokens, completion_tokens, created_at, expires_at)
    SELECT customer_id, ${text(receipt.id)}, ${text(receipt.jws)}, ${text(receipt.sha256)},
      ${text(receipt.kid)}, ${text(JSON.stringify(refs))}, ${text(row.model)},
      ${text(row.provider)}, ${int64(row.promptTokens)}, ${int64(row.completionTokens)},
      last_usage_at, ${expiry}
    FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId}`
  if (refs.length === 0) return [insert]
  const named = sql`customer_id = ${customerId} AND sha256 IN ${list(refs)}`
  const kept = int64(retainUntil(receipt.expiresAtMs))
  return [
    insert,
    sql`UPDATE evidence SET expires_at = ${kept} WHERE ${named} AND expires_at < ${kept}`,
    sql`SELECT sha256 FROM evidence WHERE ${named}`,
  ]
}
