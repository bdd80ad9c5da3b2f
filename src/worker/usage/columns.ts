import { formatNano } from '../../protocol/money.ts'
import type { CsvCell } from '../http/csv.ts'
import type { Row } from '../storage/database.ts'
import {
  bigintOf,
  flagOf,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'

/** One column of a usage row, in CSV and in JSON. */
export interface UsageColumn {
  readonly name: string
  readonly read: (row: Row) => CsvCell
  /** The value for which a JSON row omits the member; without it, the member is always present. */
  readonly omitted?: CsvCell
  /** Whether the text is written as a JSON number. */
  readonly isNumber?: true
}

/** The columns of a usage row (see docs/api.md), in the order of CSV and JSON. */
export const USAGE_COLUMNS: readonly UsageColumn[] = [
  ...['id', 'model', 'modality', 'provider'].map(textColumn),
  { ...optionalTextColumn('region'), omitted: null },
  textColumn('billing_unit'),
  { name: 'audio_seconds', read: (row) => optionalNumberOf(row, 'audio_seconds') },
  numberColumn('prompt_tokens'),
  numberColumn('completion_tokens'),
  // Written with all digits as a JSON number. A double cannot represent every amount, but clients can read the number as
  // text.
  { name: 'cost_eur', read: (row) => formatNano(bigintOf(row, 'cost_nano')), isNumber: true },
  { name: 'discount_applied_pct', read: (row) => numberOf(row, 'discount_pct') },
  optionalTextColumn('receipt_id'),
  { name: 'failover', read: (row) => flagOf(row, 'failover') },
  { name: 'usage_capped', read: (row) => flagOf(row, 'capped'), omitted: false },
  optionalTextColumn('key_prefix'),
  optionalTextColumn('key_name'),
  { name: 'created_at', read: (row) => new Date(numberOf(row, 'created_at')).toISOString() },
]

function textColumn(name: string): UsageColumn {
  return { name, read: (row) => textOf(row, name) }
}

function optionalTextColumn(name: string): UsageColumn {
  return { name, read: (row) => optionalTextOf(row, name) }
}

function numberColumn(name: string): UsageColumn {
  return { name, read: (row) => numberOf(row, name) }
}
