import { numberOf } from '../storage/row.ts'
import type { Row, Statement } from '../storage/database.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { EARLIEST, LATEST, type UsageQuery } from './query.ts'

/** A customer's rows by their numbers, both ends included; no rows where `to` is less than `from`. */
export interface RowRange {
  readonly from: number
  readonly to: number
}

/** More rows than any customer ever has; a power of two. */
const LARGEST_STEP = 2 ** 40

/**
 * SQL expression: the number of rows dated before a time, or also at it. A binary search among the row numbers, which needs
 * no index by time. It is exact because no row is dated before its predecessor.
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

/** SQL expression: the number of the first row in the range of times. */
export function firstInRange(customerId: string, { start }: UsageQuery): Statement {
  return start <= EARLIEST ? raw('1') : sql`${rowsUntil(customerId, '<', start)} + 1`
}

/** SQL expression: the number of the last row in the range of times; less than the first where the range is empty. */
export function lastInRange(customerId: string, { end }: UsageQuery): Statement {
  return end >= LATEST
    ? sql`COALESCE((SELECT MAX(seq) FROM usage WHERE customer_id = ${customerId}), 0)`
    : rowsUntil(customerId, '<=', end)
}

/** Reads the numbers of the first and the last row in the range of times, for `readRange`. */
export function rangeOf(customerId: string, query: UsageQuery): Statement {
  return sql`SELECT ${firstInRange(customerId, query)} AS lo, ${lastInRange(customerId, query)} AS hi`
}

export function readRange([bounds]: readonly Row[]): RowRange {
  if (bounds === undefined) throw new Error('internal error: a range of rows was left unanswered')
  return { from: numberOf(bounds, 'lo'), to: numberOf(bounds, 'hi') }
}

/** SQL condition: the row is in the range. */
export function inRange(customerId: string, { from, to }: RowRange): Statement {
  return sql`usage.customer_id = ${customerId} AND usage.seq BETWEEN ${int64(from)} AND ${int64(to)}`
}
