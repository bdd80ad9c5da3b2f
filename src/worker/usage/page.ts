import type { Database, Row, Statement } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { EARLIEST, LATEST, type UsageQuery } from './query.ts'

/** One page of rows, newest first, and how many rows match on all pages. */
export interface UsagePage {
  readonly rows: readonly Row[]
  readonly total: number
}

/** Runs one statement that reads. */
export type Read = (statement: Statement) => Promise<readonly Row[]>

/** Reads from a ledger without pauses. */
export function readOf(ledger: Database): Read {
  return async (statement) => (await ledger.batch([statement]))[0] ?? []
}

/** Rows that a filter is applied to in one read: some tens of milliseconds, in which the engine may do nothing else. */
const ROWS_AT_A_TIME = 10_000

/**
 * Reads a page of a customer's ledger.
 *
 * A customer's rows are numbered 1, 2, 3, ... without gaps and never dated before their predecessor, so a range of
 * times is a range of numbers: without `model` and `key_prefix` the count is a subtraction, any page is found by its
 * numbers, and later pages cost no more. With a filter all rows in the range of times are read, in parts up to the row that
 * was the last at the beginning, so that rows and count are consistent (docs/storage.md has measurements).
 */
export async function readUsagePage(
  read: Read,
  customerId: string,
  query: UsageQuery,
  rowsAtATime = ROWS_AT_A_TIME,
): Promise<UsagePage> {
  const { limit, offset } = query
  const wanted = { limit, offset, rowsAtATime }
  if (isFiltered(query)) return readMatching(read, customerId, query, wanted)
  const rows = await read(numberedPage(customerId, query))
  const [first] = rows
  return { rows: rowsOf(rows), total: first === undefined ? 0 : numberOf(first, 'total') }
}

/**
 * The newest rows of a query that are older than its row `seq`, at most `count`; without `seq` the newest of all, after the
 * query's offset.
 */
export async function readRowsBefore(
  read: Read,
  customerId: string,
  query: UsageQuery,
  { seq, count }: { readonly seq: number | undefined; readonly count: number },
  rowsAtATime = ROWS_AT_A_TIME,
): Promise<readonly Row[]> {
  const offset = seq === undefined ? query.offset : 0
  const wanted = { below: seq, limit: count, offset, rowsAtATime }
  if (!isFiltered(query)) return read(numberedRows(customerId, query, wanted))
  return (await readMatching(read, customerId, query, { ...wanted, untilFull: true })).rows
}

interface Wanted {
  readonly limit: number
  readonly offset: number
  /** The number of a row in the query's range of times: only older ones are wanted. */
  readonly below?: number | undefined
  /** Whether rows that match are counted only until there are as many as wanted. */
  readonly untilFull?: boolean
}

interface WantedMatches extends Wanted {
  readonly rowsAtATime: number
}

/** Reads rows that a filter leaves, and counts them. */
async function readMatching(
  read: Read,
  customerId: string,
  query: UsageQuery,
  { below, limit, offset, rowsAtATime, untilFull = false }: WantedMatches,
): Promise<UsagePage> {
  const [bounds] = await read(rangeOf(customerId, query))
  if (bounds === undefined) return { rows: [], total: 0 }
  const [first, last] = [numberOf(bounds, 'lo'), numberOf(bounds, 'hi')]
  const enough = untilFull ? limit : Number.POSITIVE_INFINITY
  const rows: Row[] = []
  let total = 0
  for (
    let to = Math.min(last, (below ?? Number.POSITIVE_INFINITY) - 1);
    to >= first && rows.length < enough;
    to -= rowsAtATime
  ) {
    const range = { from: Math.max(first, to - rowsAtATime + 1), to }
    const wanted = { limit: limit - rows.length, offset: Math.max(offset - total, 0), untilFull }
    // oxlint-disable-next-line no-await-in-loop -- one after another, so that other requests run in between
    const part = await read(matchingPart(customerId, query, range, wanted))
    rows.push(...rowsOf(part))
    total += part[0] === undefined ? 0 : numberOf(part[0], 'total')
  }
  return { rows, total }
}

function isFiltered({ model, keyPrefix }: UsageQuery): boolean {
  return model !== undefined || keyPrefix !== undefined
}

/** Without the one that carries only the count. */
function rowsOf(rows: readonly Row[]): readonly Row[] {
  return rows.filter((row) => row['id'] !== null)
}

/** A page always has a first row, which carries the count even where there is no other. */
const COLUMNS = raw(`usage.seq, usage.id, usage.model, usage.modality, usage.provider, usage.region,
  usage.billing_unit, usage.audio_seconds, usage.prompt_tokens, usage.completion_tokens,
  CAST(usage.cost_nano AS TEXT) AS cost_nano, usage.discount_pct, usage.receipt_id,
  usage.failover, usage.capped, usage.created_at, api_keys.key_prefix, api_keys.name AS key_name`)

export const LIVE_KEY = raw(`LEFT JOIN api_keys ON api_keys.customer_id = usage.customer_id
  AND api_keys.key_prefix = usage.key_prefix AND api_keys.deleted_at IS NULL`)

/** More than a customer ever has rows; a power of two. */
const LARGEST_STEP = 2 ** 40

/**
 * How many of the first rows are dated before a time, or at it as well: a search by halves among the row numbers, which
 * needs no index by time. It is exact because no row is dated before its predecessor.
 */
function rowsUntil(customerId: string, comparison: '<' | '<=', time: number): Statement {
  return sql`(SELECT MAX(found) FROM (
    WITH RECURSIVE steps(found, step) AS (
      SELECT CAST(0 AS BIGINT), CAST(${raw(String(LARGEST_STEP))} AS BIGINT)
      UNION ALL
      SELECT found + CASE WHEN (SELECT created_at FROM usage WHERE customer_id = ${customerId}
          AND seq = found + step) ${raw(comparison)} ${int64(time)} THEN step ELSE 0 END, step / 2
      FROM steps WHERE step > 0)
    SELECT found FROM steps) AS search)`
}

/** The number of the first row in the range of times. */
function firstInRange(customerId: string, { start }: UsageQuery): Statement {
  return start <= EARLIEST ? raw('1') : sql`${rowsUntil(customerId, '<', start)} + 1`
}

/** The number of the last row in the range of times; less than the first where the range is empty. */
function lastInRange(customerId: string, { end }: UsageQuery): Statement {
  return end >= LATEST
    ? sql`COALESCE((SELECT MAX(seq) FROM usage WHERE customer_id = ${customerId}), 0)`
    : rowsUntil(customerId, '<=', end)
}

/** The numbers of the first and the last row in the range of times; there is one between them only where `lo <= hi`. */
export function rangeOf(customerId: string, query: UsageQuery): Statement {
  return sql`SELECT ${firstInRange(customerId, query)} AS lo, ${lastInRange(customerId, query)} AS hi`
}

function numberedRows(
  customerId: string,
  query: UsageQuery,
  { below, limit, offset }: Wanted,
): Statement {
  // By numbers alone: OFFSET would read every row that it leaves out.
  const newest =
    below === undefined
      ? sql`${lastInRange(customerId, query)} - ${int64(offset)}`
      : int64(below - 1)
  return sql`SELECT ${COLUMNS} FROM usage ${LIVE_KEY}
    WHERE usage.customer_id = ${customerId}
      AND usage.seq BETWEEN ${firstInRange(customerId, query)} AND ${newest}
    ORDER BY usage.seq DESC LIMIT ${limit}`
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

function matchingPart(
  customerId: string,
  query: UsageQuery,
  { from, to }: { readonly from: number; readonly to: number },
  { limit, offset, untilFull = false }: Wanted,
): Statement {
  const matching = sql`FROM usage WHERE customer_id = ${customerId}
    AND seq BETWEEN ${int64(from)} AND ${int64(to)} ${filters(customerId, query)}`
  const counted = untilFull
    ? sql`FROM (SELECT seq ${matching} ORDER BY seq DESC LIMIT ${offset + limit}) AS enough`
    : matching
  return sql`SELECT counted.total, ${COLUMNS}
    FROM (SELECT COUNT(*) AS total ${counted}) AS counted
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
