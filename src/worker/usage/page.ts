import type { Row, Statement } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'
import { BLOCKS, type BlockPlan } from './blocks.ts'
import { LIVE_KEY, ROW_COLUMNS } from './columns-sql.ts'
import type { UsageLedger } from './ledger.ts'
import { readMatchingBefore, readMatchingPage } from './matching-rows.ts'
import type { UsageQuery } from './query.ts'
import { firstInRange, lastInRange } from './row-range.ts'

/** One page of rows, newest first, and how many rows match on all pages. */
export interface UsagePage {
  readonly rows: readonly Row[]
  readonly total: number
}

/**
 * Reads a page of a customer's ledger.
 *
 * A customer's rows are numbered 1, 2, 3, ... without gaps and never dated before their predecessor, so a range of times is
 * a range of numbers: without `model` and `key_prefix` the count is a subtraction, any page is found by its numbers, and
 * later pages cost no more. With a filter the totals of blocks show where the rows of the page are (docs/storage.md has
 * measurements).
 */
export async function readUsagePage(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
  plan: BlockPlan = BLOCKS,
): Promise<UsagePage> {
  if (isFiltered(query)) return readMatchingPage(ledger, customerId, query, plan)
  const [rows = []] = await ledger.read([numberedPage(customerId, query)])
  const [first] = rows
  return { rows: withId(rows), total: first === undefined ? 0 : numberOf(first, 'total') }
}

/**
 * The newest rows of a query that are older than row `seq`, at most `count`; without `seq` the newest of all, after the
 * query's offset.
 */
export async function readRowsBefore(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
  { seq, count }: { readonly seq: number | undefined; readonly count: number },
  plan: BlockPlan = BLOCKS,
): Promise<readonly Row[]> {
  const offset = seq === undefined ? query.offset : 0
  const wanted = { below: seq, limit: count, offset }
  if (isFiltered(query)) return readMatchingBefore(ledger, customerId, query, wanted, plan)
  const [rows = []] = await ledger.read([numberedRows(customerId, query, wanted)])
  return rows
}

function isFiltered({ model, keyPrefix }: UsageQuery): boolean {
  return model !== undefined || keyPrefix !== undefined
}

/** Removes the row without an id: a page always has a first row, which carries the count even where no row matches. */
function withId(rows: readonly Row[]): readonly Row[] {
  return rows.filter((row) => row['id'] !== null)
}

interface NumberedRows {
  readonly limit: number
  readonly offset: number
  /** A row number in the query's range of times: only older rows are wanted. */
  readonly below: number | undefined
}

function numberedRows(
  customerId: string,
  query: UsageQuery,
  { below, limit, offset }: NumberedRows,
): Statement {
  // Found by number, because OFFSET would read every row that it skips.
  const newest =
    below === undefined
      ? sql`${lastInRange(customerId, query)} - ${int64(offset)}`
      : int64(below - 1)
  return sql`SELECT ${ROW_COLUMNS} FROM usage ${LIVE_KEY}
    WHERE usage.customer_id = ${customerId}
      AND usage.seq BETWEEN ${firstInRange(customerId, query)} AND ${newest}
    ORDER BY usage.seq DESC LIMIT ${limit}`
}

function numberedPage(customerId: string, query: UsageQuery): Statement {
  const { limit, offset } = query
  const [lo, hi] = [firstInRange(customerId, query), lastInRange(customerId, query)]
  return sql`SELECT CASE WHEN hi >= lo THEN hi - lo + 1 ELSE 0 END AS total, ${ROW_COLUMNS}
    FROM (SELECT ${lo} AS lo, ${hi} AS hi) AS bounds
    LEFT JOIN usage ON usage.customer_id = ${customerId}
      AND usage.seq <= hi - ${int64(offset)} AND usage.seq > hi - ${int64(offset + limit)}
      AND usage.seq >= lo
    ${LIVE_KEY}
    ORDER BY usage.seq DESC`
}
