import { formatNano } from '../../protocol/money.ts'
import { csvRecord, type CsvCell } from '../http/csv.ts'
import type { Row } from '../storage/database.ts'
import {
  bigintOf,
  flagOf,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'

/** Rows of the ledger that an export reads at a time. */
const EXPORT_PAGE = 500

/** The columns of a usage export, by the names of the JSON rows. */
const COLUMNS: readonly (readonly [name: string, read: (row: Row) => CsvCell])[] = [
  ...['id', 'model', 'modality', 'provider'].map(textColumn),
  optionalTextColumn('region'),
  textColumn('billing_unit'),
  ['audio_seconds', (row) => optionalNumberOf(row, 'audio_seconds')],
  ['prompt_tokens', (row) => numberOf(row, 'prompt_tokens')],
  ['completion_tokens', (row) => numberOf(row, 'completion_tokens')],
  // Written with all digits: a double cannot represent every amount.
  ['cost_eur', (row) => formatNano(bigintOf(row, 'cost_nano'))],
  ['discount_applied_pct', (row) => numberOf(row, 'discount_pct')],
  optionalTextColumn('receipt_id'),
  ['failover', (row) => flagOf(row, 'failover')],
  ['usage_capped', (row) => flagOf(row, 'capped')],
  optionalTextColumn('key_prefix'),
  optionalTextColumn('key_name'),
  ['created_at', (row) => new Date(numberOf(row, 'created_at')).toISOString()],
]

function textColumn(name: string): readonly [string, (row: Row) => CsvCell] {
  return [name, (row) => textOf(row, name)]
}

function optionalTextColumn(name: string): readonly [string, (row: Row) => CsvCell] {
  return [name, (row) => optionalTextOf(row, name)]
}

/**
 * A usage export, page by page.
 * @param readBefore reads the newest rows of the query with numbers below `seq`, or the newest of all
 * @param limit maximum number of rows
 */
export async function* usageCsv(
  readBefore: (seq: number | undefined, count: number) => Promise<readonly Row[]>,
  limit: number,
  pageSize = EXPORT_PAGE,
): AsyncGenerator<string> {
  yield csvRecord(COLUMNS.map(([name]) => name))
  let before: number | undefined
  for (let left = limit; left > 0;) {
    const count = Math.min(pageSize, left)
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const rows = await readBefore(before, count)
    if (rows.length > 0) {
      yield rows.map((row) => csvRecord(COLUMNS.map(([, read]) => read(row)))).join('')
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < count) return
    before = numberOf(last, 'seq')
    left -= rows.length
  }
}
