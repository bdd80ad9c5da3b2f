import type { Row, Statement } from '../storage/database.ts'
import type {
  StoredEvidence,
  SettlementEntry,
  SettlementResult,
  StoredReceipt,
} from '../storage/ledger-operations.ts'
import { textOf } from '../storage/row.ts'
import { int64, list, raw, real, small, sql, text } from '../storage/sql.ts'
import { windowIsOver } from './admit-sql.ts'
import { alertStatements } from './alerts.ts'
import { completeClaim, dropClaim, readOwner, takenByAnother } from './claims.ts'
import { addSpent } from './key-limits.ts'
import { UNLIMITED } from './plan-terms.ts'

/** One batch that bills a request. It changes nothing where the request is billed already or has lost its claim. */
export function settlementBatch(entry: SettlementEntry): readonly Statement[] {
  return [
    lockCustomer(entry.customerId),
    ...claimOwner(entry),
    bill(entry),
    writeUsage(entry),
    countOnKey(entry),
    ...alerts(entry),
    closeReservation(entry),
    ...completion(entry),
    ...(entry.receipt === null ? [] : writeReceipt(entry, entry.receipt)),
  ]
}

/** The result of a settlement, from the rows that its batch returned. */
export function settlementResult(
  { requestId, claim, receipt }: SettlementEntry,
  rows: readonly (readonly Row[])[],
): SettlementResult {
  if (rows[0]?.length !== 1) return { outcome: 'no_account', missingEvidence: [] }
  const owner = claim === null ? undefined : rows[1]?.[0]
  const isLost = owner !== undefined && textOf(owner, 'request_id') !== requestId
  if (isLost) return { outcome: 'claim_lost', missingEvidence: [] }
  const refs = receipt?.evidenceRefs ?? []
  if (refs.length === 0) return { outcome: 'settled', missingEvidence: [] }
  const held = new Set((rows.at(-1) ?? []).map((row) => textOf(row, 'sha256')))
  return { outcome: 'settled', missingEvidence: refs.filter((ref) => !held.has(ref)) }
}

/** One batch that removes a reservation; its last statement returns the removed row. */
export function releaseBatch(requestId: string): readonly Statement[] {
  const own = sql`(SELECT customer_id FROM reservations WHERE request_id = ${requestId})`
  const amount = sql`(SELECT amount_nano FROM reservations WHERE request_id = ${requestId})`
  return [
    sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${own}`,
    sql`UPDATE customers SET reserved_nano = reserved_nano - ${amount} WHERE customer_id = ${own}`,
    dropClaim(requestId),
    sql`DELETE FROM reservations WHERE request_id = ${requestId} RETURNING request_id`,
  ]
}

const HOUR_MS = 3_600_000

/**
 * Evidence expires at the end of the hour in which the last receipt that names it expires. Rounding up avoids
 * rewriting its large row for every receipt.
 */
export function retainUntil(expiresAtMs: number): number {
  return Math.ceil(expiresAtMs / HOUR_MS) * HOUR_MS
}

/**
 * Locks the customer, so that on PostgreSQL (READ COMMITTED) the statements that follow see what earlier holders committed.
 */
export function lockCustomer(customerId: string): Statement {
  return sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${customerId}
    RETURNING customer_id`
}

/**
 * Charges the cost, removes the reserved amount and assigns the number of the usage row, unless the request already has that
 * row or has lost its claim.
 */
function bill(entry: SettlementEntry): Statement {
  const { requestId, customerId, usage } = entry
  const now = int64(usage.createdAtMs)
  return sql`UPDATE customers SET lock_request_id = ${requestId},
      balance_nano = balance_nano - ${int64(BigInt(usage.costNano))},
      reserved_nano = reserved_nano - COALESCE(
        (SELECT amount_nano FROM reservations WHERE request_id = ${requestId}), 0),
      usage_count = usage_count + 1,
      last_usage_at = CASE WHEN last_usage_at > ${now} THEN last_usage_at ELSE ${now} END
    WHERE customer_id = ${customerId}
      AND NOT EXISTS (SELECT 1 FROM usage WHERE id = ${requestId})
      AND NOT ${isFenced(entry)}`
}

/** Reads the owner of the claim, after the customer was locked. */
function claimOwner({ claim, customerId }: SettlementEntry): readonly Statement[] {
  return claim === null ? [] : [readOwner(claim, customerId)]
}

/** Whether another request has taken over this request's claim. */
function isFenced({ requestId, customerId, claim }: SettlementEntry): Statement {
  return claim === null ? raw('(1 = 0)') : takenByAnother(claim, { requestId, customerId })
}

/** Completes the claim with its answer. */
function completion(entry: SettlementEntry): readonly Statement[] {
  const { requestId, customerId, claim, answer, usage } = entry
  if (claim === null) return []
  return completeClaim({ claim, requestId, customerId, answer, now: usage.createdAtMs })
}

function writeUsage({
  requestId,
  customerId,
  keyPrefix,
  usage,
  receipt,
}: SettlementEntry): Statement {
  return sql`INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality,
      provider, region, billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano,
      discount_pct, usd_eur, receipt_id, failover, capped)
    SELECT lock_request_id, customer_id, usage_count, last_usage_at, ${text(keyPrefix)},
      ${text(usage.model)}, ${text(usage.modality)}, ${text(usage.provider)}, ${text(usage.region)},
      ${text(usage.billingUnit)}, ${real(usage.audioSeconds)}, ${int64(usage.promptTokens)},
      ${int64(usage.completionTokens)}, ${int64(BigInt(usage.costNano))}, ${small(usage.discountPct)},
      ${text(usage.usdEur)}, ${text(receipt?.id ?? null)}, ${small(usage.failover ? 1 : 0)},
      ${small(usage.capped ? 1 : 0)}
    FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId}`
}

/** Adds cost and tokens to those of the key, for its own limits. */
function countOnKey({ requestId, customerId, keyPrefix, usage }: SettlementEntry): Statement {
  const now = usage.createdAtMs
  const tokens = usage.promptTokens + usage.completionTokens
  return sql`UPDATE api_keys SET ${addSpent(now, BigInt(usage.costNano))}, ${addTokens(now, tokens)}
    WHERE customer_id = ${customerId} AND key_prefix = ${keyPrefix} AND EXISTS (
      SELECT 1 FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId})`
}

/**
 * Adds tokens to the key's window. If the window has ended and the key limits tokens, begins a new one: no later check reads
 * the tokens of an ended window, so a key could use any number of tokens with requests that outlast their window.
 */
function addTokens(now: number, tokens: number): Statement {
  const begins = sql`tokens_per_minute IS NOT NULL AND ${windowIsOver(now)}`
  return sql`
      window_started_at = CASE WHEN ${begins} THEN ${int64(now)} ELSE window_started_at END,
      window_requests = CASE WHEN ${begins} THEN 0 ELSE window_requests END,
      window_tokens = CASE WHEN ${begins} THEN ${int64(Math.min(tokens, UNLIMITED))}
        WHEN window_tokens > ${int64(UNLIMITED - tokens)} THEN ${int64(UNLIMITED)}
        ELSE window_tokens + ${int64(tokens)} END`
}

/** Reports the thresholds that this bill crosses. */
function alerts(entry: SettlementEntry): readonly Statement[] {
  const { requestId, customerId, keyPrefix, usage, alertBelowNano } = entry
  if (alertBelowNano === null) return []
  const [costNano, now] = [BigInt(usage.costNano), usage.createdAtMs]
  const billed = { requestId, customerId, keyPrefix, costNano, now }
  return alertStatements({ balanceBelowNano: BigInt(alertBelowNano) }, billed)
}

function closeReservation({ requestId, customerId }: SettlementEntry): Statement {
  return sql`DELETE FROM reservations WHERE request_id = ${requestId} AND EXISTS (
    SELECT 1 FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId})`
}

/**
 * Writes the receipt's row, extends the retention of evidence it shares with others, and reads which evidence is
 * present.
 */
function writeReceipt(
  { requestId, customerId, usage }: SettlementEntry,
  receipt: StoredReceipt,
): readonly Statement[] {
  const refs = receipt.evidenceRefs
  const expiry = int64(receipt.expiresAtMs)
  const insert = sql`INSERT INTO receipts (customer_id, receipt_id, jws, sha256, kid, evidence_refs,
      model, provider, prompt_tokens, completion_tokens, created_at, expires_at)
    SELECT customer_id, ${text(receipt.id)}, ${text(receipt.jws)}, ${text(receipt.sha256)},
      ${text(receipt.kid)}, ${text(JSON.stringify(refs))}, ${text(usage.model)},
      ${text(usage.provider)}, ${int64(usage.promptTokens)}, ${int64(usage.completionTokens)},
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

/**
 * Stores a piece of evidence, or extends its retention where it is stored. It stores nothing for a customer that was erased
 * since its receipt was stored: nothing would ever delete the evidence.
 */
export function insertEvidence(evidence: StoredEvidence): Statement {
  const { customerId, sha256, dataB64, expiresAt } = evidence
  return sql`INSERT INTO evidence (customer_id, sha256, data_b64, expires_at)
    SELECT customer_id, ${text(sha256)}, ${text(dataB64)}, ${int64(expiresAt)}
    FROM customers WHERE customer_id = ${customerId}
    ON CONFLICT (customer_id, sha256) DO UPDATE SET expires_at = CASE
      WHEN excluded.expires_at > evidence.expires_at THEN excluded.expires_at
      ELSE evidence.expires_at END`
}
