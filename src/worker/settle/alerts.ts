import type { Database, Statement } from '../storage/database.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'
import { LIMIT_RESETS, periodOf, spentInPeriod, type LimitReset } from './key-limits.ts'

/**
 * The thresholds that settlements report to the operator (docs/webhooks.md). The report is written in the settlement's
 * own batch, so that crossing a threshold is reported exactly once and never lost.
 */
export interface Alerts {
  /** A prepaid balance below this is reported, unless the customer has a threshold of its own. */
  readonly balanceBelowNano: bigint
}

/** Percent of a key's limit, unless the customer has a threshold of its own. */
export const KEY_LIMIT_PCT = 80

interface Bill {
  readonly requestId: string
  readonly customerId: string
  readonly keyPrefix: string
  readonly costNano: bigint
  /** Ms. */
  readonly now: number
}

/** Statements that run after those that charged the balance and the key. */
export function alertStatements({ balanceBelowNano }: Alerts, bill: Bill): readonly Statement[] {
  const { requestId, customerId, keyPrefix, costNano, now } = bill
  const cost = int64(costNano)
  const below = sql`COALESCE(alert_balance_nano, ${int64(balanceBelowNano)})`
  // Divided first: a limit times a hundred may be too large for 64 bits.
  const near = sql`limit_nano / 100 * COALESCE(alert_key_limit_pct, ${raw(`${KEY_LIMIT_PCT}`)})`
  const settled = sql`customers.customer_id = ${customerId} AND lock_request_id = ${requestId}`
  const ofKey = sql`FROM api_keys JOIN customers ON customers.customer_id = api_keys.customer_id
    WHERE ${settled} AND key_prefix = ${keyPrefix} AND limit_nano IS NOT NULL`
  return [
    sql`INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano, limit_nano, created_at)
      SELECT ${text(`${requestId}.balance`)}, 'balance.low', customer_id, '', balance_nano, ${below},
        ${int64(now)}
      FROM customers WHERE ${settled} AND billing = 'prepaid'
        AND balance_nano < ${below} AND balance_nano + ${cost} >= ${below}
      ON CONFLICT (id) DO NOTHING`,
    sql`INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano, limit_nano, created_at)
      SELECT ${text(`${requestId}.key`)}, 'key.limit_near', customers.customer_id, key_prefix, spent_nano,
        limit_nano, ${int64(now)}
      ${ofKey} AND spent_nano >= ${near} AND spent_nano - ${cost} < ${near}
      ON CONFLICT (id) DO NOTHING`,
    sql`INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano, limit_nano, created_at)
      SELECT ${reachedId(now)}, 'key.limit_reached', customers.customer_id, key_prefix, spent_nano,
        limit_nano, ${int64(now)}
      ${ofKey} AND spent_nano >= limit_nano
      ON CONFLICT (id) DO NOTHING`,
  ]
}

/**
 * Reports that the limit of a key left no room for a request. A request is refused before the limit is spent to the
 * last cent, so this is how most limits are reached. Reported once for each limit and period.
 * @throws StorageUnavailable when the storage does not answer
 */
export async function reportLimitReached(
  db: Database,
  { customerId, keyPrefix }: Pick<Bill, 'customerId' | 'keyPrefix'>,
  now: number,
): Promise<void> {
  await db.batch([
    sql`INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano, limit_nano, created_at)
      SELECT ${reachedId(now)}, 'key.limit_reached', customer_id, key_prefix, ${spentInPeriod(now)},
        limit_nano, ${int64(now)}
      FROM api_keys WHERE customer_id = ${customerId} AND key_prefix = ${keyPrefix}
        AND limit_nano IS NOT NULL
      ON CONFLICT (id) DO NOTHING`,
  ])
}

/** The id of the report that a key's limit is reached, the same for one key, limit and period. */
export function limitReachedId(
  keyPrefix: string,
  limitNano: bigint,
  reset: LimitReset,
  now: number,
): string {
  return `${keyPrefix}.${limitNano}.${periodOf(reset, now).start}`
}

/** The id that `limitReachedId` returns, as an SQL expression over `api_keys`. */
function reachedId(now: number): Statement {
  const periods = LIMIT_RESETS.map(
    (reset) => `WHEN '${reset}' THEN '${periodOf(reset, now).start}'`,
  )
  return raw(`(key_prefix || '.' || CAST(limit_nano AS TEXT) || '.'
    || CASE limit_reset ${periods.join(' ')} ELSE '' END)`)
}
