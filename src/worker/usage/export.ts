import { csvRecord } from '../http/csv.ts'
import type { Row } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { USAGE_COLUMNS } from './columns.ts'

/** Number of ledger rows that an export reads at a time. */
const EXPORT_PAGE = 500

/**
 * Generates a usage export as CSV, page by page.
 * @param readBefore reads the newest rows of the query with numbers below `seq`; without `seq` the newest of all
 * @param limit maximum number of rows
 */
export async function* usageCsv(
  readBefore: (seq: number | undefined, count: number) => Promise<readonly Row[]>,
  limit: number,
  pageSize = EXPORT_PAGE,
): AsyncGenerator<string> {
  yield csvRecord(USAGE_COLUMNS.map(({ name }) => name))
  let before: number | undefined
  for (let left = limit; left > 0;) {
    const count = Math.min(pageSize, left)
    // One after another: each page begins where the previous one ended.
    const rows = await readBefore(before, count)
    if (rows.length > 0) {
      yield rows.map((row) => csvRecord(USAGE_COLUMNS.map(({ read }) => read(row)))).join('')
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < count) return
    before = numberOf(last, 'seq')
    left -= rows.length
  }
}
