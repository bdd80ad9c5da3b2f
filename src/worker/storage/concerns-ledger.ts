import { isRead } from './sql.ts'
import type { Statement } from './database.ts'

/** What a fold writes, by name: tables, and columns of a table that has others. */
const FOLDED =
  /\*|\b(customers|reservations|usage|receipts|evidence|webhook_events|journal|spent_\w+|window_\w+)\b/i

/** Tables that accounts are read from. */
const OF_ACCOUNTS = /\b(customers|api_keys|rotated_keys|reservations|evidence)\b/i

/** Tables that a fold writes and accounts are not read from. */
const FOLDED_ONLY = /\b(usage|receipts|webhook_events|journal)\b/i

/**
 * Whether a statement must see what was settled and reserved before it: a read of something that a fold writes, or a write
 * to anything that accounts are made of.
 */
export function concernsLedger(statement: Statement): boolean {
  return isRead(statement)
    ? FOLDED.test(statement.sql)
    : changesAccounts(statement) || FOLDED_ONLY.test(statement.sql)
}

/** Whether a statement may change what accounts are read from. */
export function changesAccounts(statement: Statement): boolean {
  return !isRead(statement) && OF_ACCOUNTS.test(statement.sql)
}
