import { endOfFormer, isKey, wasEverKey } from '../auth/held-key.ts'
import type { Statement } from '../storage/database.ts'
import type { AdmissionEntry } from '../storage/ledger-operations.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'
import { heldByAnother, takeClaim } from './claims.ts'
import { withinLimit } from './key-limits.ts'
import { amountAt, planAmount, planLimit, UNLIMITED } from './plan-terms.ts'

/** The request window of a key: a minute from the first request after the last window ended. */
export const WINDOW_MS = 60_000

const NO_LIMIT = raw(String(UNLIMITED))

/**
 * One batch that admits a request or changes nothing. Its first statement takes the customer's row lock, so on
 * PostgreSQL (READ COMMITTED) each later statement sees everything that earlier holders committed, and races are
 * decided one after another. `customers.lock_request_id` names the request only once all conditions hold, and the
 * remaining writes depend on it. Running the batch twice admits once.
 */
export function admissionBatch(request: AdmissionEntry): readonly Statement[] {
  return [
    lockCustomer(request),
    reserve(request),
    openReservation(request),
    ...claim(request),
    countRequest(request),
    readFacts(request),
  ]
}

/** Locks the customer and stores the reservation's amount after the plan's discount. */
function lockCustomer({ plans, key, reserveNano }: AdmissionEntry): Statement {
  const amount = planAmount(plans, (discountPct) => BigInt(amountAt(reserveNano, discountPct)))
  return sql`UPDATE customers SET lock_request_id = '', lock_reserve_nano = ${amount}
    WHERE customer_id = ${key.customerId}`
}

function reserve(request: AdmissionEntry): Statement {
  const { requestId, key, plans, now } = request
  const perMinute = planLimit(plans, 'requests_per_minute')
  const concurrent = planLimit(plans, 'concurrent_requests')
  return sql`UPDATE customers SET lock_request_id = ${requestId}, reserved_nano = reserved_nano + lock_reserve_nano
    WHERE customer_id = ${key.customerId}
      AND NOT EXISTS (SELECT 1 FROM reservations WHERE request_id = ${requestId})
      AND NOT ${isRepeat(request)}
      AND suspended_at IS NULL
      AND (billing = 'postpaid' OR balance_nano - reserved_nano >= lock_reserve_nano)
      AND EXISTS (SELECT 1 FROM api_keys
        WHERE api_keys.customer_id = customers.customer_id
          AND key_prefix = ${key.keyPrefix} AND ${isKey(key, now)} AND deleted_at IS NULL
          AND (expires_at IS NULL OR expires_at > ${int64(now)})
          AND (${windowIsOver(now)} OR (window_requests < ${perMinute}
            AND window_requests < ${ownLimit('requests_per_minute')}
            AND window_tokens < ${ownLimit('tokens_per_minute')}))
          AND (api_keys.concurrent_requests IS NULL
            OR api_keys.concurrent_requests > ${openOfKey(key.keyPrefix, now)})
          AND ${withinLimit(now)})
      AND (${concurrent} = ${NO_LIMIT} OR ${concurrent} > ${openOfKey(key.keyPrefix, now)})`
}

function openReservation({ requestId, key, expiresAt, now }: AdmissionEntry): Statement {
  return sql`INSERT INTO reservations
      (request_id, customer_id, key_prefix, amount_nano, created_at, expires_at)
    SELECT ${text(requestId)}, customer_id, ${text(key.keyPrefix)}, lock_reserve_nano,
      ${int64(now)}, ${int64(expiresAt)}
    FROM customers WHERE customer_id = ${key.customerId} AND lock_request_id = ${requestId}`
}

/** Claims the request's `Idempotency-Key`, where it has one. */
function claim(request: AdmissionEntry): readonly Statement[] {
  const { requestId, key, now, expiresAt } = request
  if (request.claim === null) return []
  const owner = { requestId, customerId: key.customerId }
  return [takeClaim(request.claim, owner, { now, reservedUntil: expiresAt })]
}

/** Whether another request with the same `Idempotency-Key` is in progress or completed. */
function isRepeat({ requestId, key, now, claim: own }: AdmissionEntry): Statement {
  if (own === null) return raw('(1 = 0)')
  return heldByAnother(own, { requestId, customerId: key.customerId }, now)
}

/** Counts an admitted request in its key's window, and opens a new window where the old one has ended. */
function countRequest({ requestId, key, plans, now }: AdmissionEntry): Statement {
  return sql`UPDATE api_keys SET
      window_requests = CASE WHEN ${windowIsOver(now)} THEN 1 ELSE window_requests + 1 END,
      window_started_at = CASE WHEN ${windowIsOver(now)} THEN ${int64(now)}
        ELSE window_started_at END,
      window_tokens = CASE WHEN ${windowIsOver(now)} THEN 0 ELSE window_tokens END
    WHERE customer_id = ${key.customerId} AND key_prefix = ${key.keyPrefix}
      AND EXISTS (SELECT 1 FROM customers
        WHERE customer_id = ${key.customerId} AND lock_request_id = ${requestId}
          AND (${planLimit(plans, 'requests_per_minute')} < ${NO_LIMIT}
            OR api_keys.requests_per_minute IS NOT NULL OR api_keys.tokens_per_minute IS NOT NULL))`
}

/** A limit of the key itself. */
function ownLimit(limit: 'requests_per_minute' | 'tokens_per_minute'): Statement {
  return raw(`COALESCE(api_keys.${limit}, CAST(${UNLIMITED} AS BIGINT))`)
}

/** Reads whether the request was admitted and, if not, the reasons. No row means that the key does not exist. */
function readFacts(request: AdmissionEntry): Statement {
  const { requestId, key, now } = request
  return sql`SELECT customers.plan, customers.name AS customer_name, customers.receipt_retention_days, customers.suspended_at,
      ${endOfFormer(key)} AS ends_at, api_keys.name AS key_name,
      api_keys.window_started_at, api_keys.window_requests, api_keys.window_tokens,
      api_keys.expires_at, api_keys.models, api_keys.requests_per_minute,
      api_keys.tokens_per_minute, api_keys.concurrent_requests, api_keys.min_attestation,
      CASE WHEN ${withinLimit(now)} THEN 0 ELSE 1 END AS over_limit,
      CASE WHEN EXISTS (SELECT 1 FROM reservations WHERE request_id = ${requestId})
        THEN 1 ELSE 0 END AS admitted,
      CASE WHEN ${isRepeat(request)} THEN 1 ELSE 0 END AS is_repeat,
      CASE WHEN customers.lock_request_id = ${requestId} THEN 0
        ELSE ${openOfKey(key.keyPrefix, now)} END AS open_requests
    FROM customers JOIN api_keys ON api_keys.customer_id = customers.customer_id
    WHERE customers.customer_id = ${key.customerId} AND api_keys.key_prefix = ${key.keyPrefix}
      AND ${wasEverKey(key)} AND api_keys.deleted_at IS NULL`
}

/** Open, unexpired reservations of a key. */
function openOfKey(keyPrefix: string, now: number): Statement {
  return sql`(SELECT COUNT(*) FROM reservations
    WHERE reservations.customer_id = customers.customer_id
      AND reservations.key_prefix = ${keyPrefix} AND reservations.expires_at > ${int64(now)})`
}

/**
 * Whether a key's window has ended. A start far in the future means that the clock was set back, and counts as ended.
 */
export function windowIsOver(now: number): Statement {
  const length = raw(String(WINDOW_MS))
  return sql`(${int64(now)} - window_started_at >= ${length}
    OR window_started_at - ${int64(now)} >= ${length})`
}
