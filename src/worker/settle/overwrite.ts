import type { Database, Statement } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'

/**
 * Overwrites the stored bodies of receipts with a filler of exactly their length, so that SQLite writes the rows in place.
 * The new `body_state`, 1, takes as many bytes as 0 in SQLite's record format: none.
 * @param which an SQL condition over `receipts` that selects no more than one round
 * @returns how many were overwritten
 */
export async function overwriteBodies(db: Database, which: Statement): Promise<number> {
  const stored = sql`body_state = 0 AND ${which}`
  const [sizes = []] = await db.batch([
    sql`SELECT COUNT(*) AS count, COALESCE(MAX(LENGTH(jws)), 0) AS longest FROM receipts
      WHERE ${stored}`,
  ])
  const [size] = sizes
  if (size === undefined || numberOf(size, 'count') === 0) return 0
  const longest = numberOf(size, 'longest')
  const [rows = []] = await db.batch([
    sql`UPDATE receipts SET jws = SUBSTR(${'0'.repeat(longest)}, 1, LENGTH(jws)), body_state = 1
      WHERE ${stored} AND LENGTH(jws) <= ${int64(longest)}
      RETURNING receipt_id`,
  ])
  return rows.length
}
