import type { Database, Row, Statement } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import type { UsageQuery } from './query.ts'

/** One page of rows, newest first, and how many rows match on all pages. */
export interface UsagePage {
  readonly rows: readonly Row[]
  readonly total: number
}

/**
 * Reads a page of a customer's ledger in one statement, so that rows and count are consistent.
 *
 * A customer's rows are numbered 1, 2, 3, ... without gaps and never dated before their predecessor, so a range of
 * times is a range of numbers: without `model` and `key_prefix` the count is a subtraction, any page is found by its
 * numbers, and later pages cost no more. With a filter the matching entries of one index are counted and skipped;
 * rows themselves are read for the page only (docs/storage.md has measurements).
 */
export async function readUsagePage(
  db: Database,
  customerId: string,
  query: UsageQuery,
): Promise<UsagePage> {
  const filtered = query.model !== undefined || query.keyPrefix !== undefined
  const statement = filtered ? filteredPage(customerId, query) : numberedPage(customerId, query)
  const [rows = []] = await db.batch([statement])
  const [first] = rows
  if (!first) return { rows: [], total: 0 }
  return { rows: rows.filter((row) => row['id'] !== null), total: numberOf(first, 'total') }
}

/** The result always has a first row, which carries the count even where the page is empty. */
const COLUMNS = raw(`usage.id, usage.model, usage.modality, usage.provider, usage.region,
  usage.billing_unit, usage.audio_seconds, usage.prompt_tokens, usage.completion_tokens,
  CAST(usage.cost_nano AS TEXT) AS cost_nano, usage.discount_pct, usage.receipt_id,
  usage.failover, usage.capped, usage.created_at, api_keys.key_prefix, api_keys.name AS key_name`)

export const LIVE_KEY = raw(`LEFT JOIN api_keys ON api_keys.customer_id = usage.customer_id
  AND api_keys.key_prefix = usage.key_prefix AND api_keys.deleted_at IS NULL`)

/** Greater than every timestamp. */
const BEYOND = raw(String(Number.MAX_SAFE_INTEGER))

/** The number of the first row in the range of times. */
function firstInRange(customerId: string, { start }: UsageQuery): Statement {
  return sql`COALESCE((SELECT seq FROM usage WHERE customer_id = ${customerId}
    AND created_at >= ${int64(start)} ORDER BY created_at, seq LIMIT 1), ${BEYOND})`
}

/** The number of the last row in the range of times; less than the first where the range is empty. */
function lastInRange(customerId: string, { end }: UsageQuery): Statement {
  return sql`COALESCE((SELECT seq FROM usage WHERE customer_id = ${customerId}
    AND created_at <= ${int64(end)} ORDER BY created_at DESC, seq DESC LIMIT 1), 0)`
}

/** The numbers of the first and the last row in the range of times; there is one between them only where `lo <= hi`. */
export function rangeOf(customerId: string, query: UsageQuery): Statement {
  return sql`SELECT ${firstInRange(customerId, query)} AS lo, ${lastInRange(customerId, query)} AS hi`
}

/** The newest rows of a query with numbers below `seq`; without `seq` the newest of all, after the query's offset. */
export function rowsBefore(
  customerId: string,
  query: UsageQuery,
  { seq, count }: { readonly seq: number | undefined; readonly count: number },
): Statement {
  const older = seq === undefined ? raw('') : sql`AND seq < ${int64(seq)}`
  return sql`SELECT usage.seq, ${COLUMNS}
    FROM (SELECT seq FROM usage WHERE customer_id = ${customerId}
      AND seq BETWEEN ${firstInRange(customerId, query)} AND ${lastInRange(customerId, query)}
      ${older} ${filters(customerId, query)} ORDER BY seq DESC
      LIMIT ${count} OFFSET ${seq === undefined ? query.offset : 0}) AS page
    JOIN usage ON usage.customer_id = ${customerId} AND usage.seq = page.seq
    ${LIVE_KEY}
    ORDER BY usage.seq DESC`
}

function numberedPage(customerId: string, query: UsageQuery): Statement {
  const { limit, offset } = query
  const [lo, hi] = [firstInRange(customerId, query), lastInRange(customerId, query)]
  return sql`SELECT CASE WHEN hi >= lo THEN hi - lo + 1 ELSE 0 END AS total, ${COLUMNS}
    FROM (SELECT ${lo} AS lo, ${hi} AS hi) AS bounds
    LEFT JOIN usage ON usage.customer_id = ${customerId}
      AND usage.seq <= hi - ${int64(offset)} AND usage.seq > hi - ${int64(offset + limit)}
      AND usage.seq >= lo
    ${LIVE_KEY}
    ORDER BY usage.seq DESC`
}

function filteredPage(customerId: string, query: UsageQuery): Statement {
  const { limit, offset } = query
  const matching = sql`FROM usage WHERE customer_id = ${customerId}
    AND seq BETWEEN ${firstInRange(customerId, query)} AND ${lastInRange(customerId, query)}
    ${filters(customerId, query)}`
  return sql`SELECT counted.total, ${COLUMNS}
    FROM (SELECT COUNT(*) AS total ${matching}) AS counted
    LEFT JOIN (SELECT seq ${matching} ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}) AS page
      ON 1 = 1
    LEFT JOIN usage ON usage.customer_id = ${customerId} AND usage.seq = page.seq
    ${LIVE_KEY}
    ORDER BY usage.seq DESC`
}

/** A deleted key's rows show no prefix, so filtering by its prefix finds nothing. */
export function filters(customerId: string, { model, keyPrefix }: UsageQuery): Statement {
  const byModel = model === undefined ? raw('') : sql`AND model = ${model}`
  if (keyPrefix === undefined) return byModel
  return sql`${byModel} AND key_prefix = ${keyPrefix} AND EXISTS (SELECT 1 FROM api_keys k
    WHERE k.customer_id = ${customerId} AND k.key_prefix = ${keyPrefix} AND k.deleted_at IS NULL)`
}
