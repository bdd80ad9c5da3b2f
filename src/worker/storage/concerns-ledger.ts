import { isRead } from './sql.ts'
import type { Statement } from './database.ts'

/** What a fold writes, by name: tables, and single columns of tables that also have others. */
const FOLDED =
  /\*|\b(customers|reservations|usage|receipts|evidence|webhook_events|journal|spent_\w+|window_\w+)\b/i

/** Tables from which accounts are read. */
const OF_ACCOUNTS = /\b(customers|api_keys|rotated_keys|reservations|evidence)\b/i

/** Tables that a fold writes but from which no account is read. */
const FOLDED_ONLY = /\b(usage|receipts|webhook_events|journal)\b/i

/**
 * Whether a statement needs a fold before it: it reads something that a fold writes, or writes a table that accounts are
 * read from or that a fold writes.
 */
export function concernsLedger(statement: Statement): boolean {
  return isRead(statement)
    ? FOLDED.test(statement.sql)
    : changesAccounts(statement) || FOLDED_ONLY.test(statement.sql)
}

/** Whether a statement may change rows from which accounts are read. */
export function changesAccounts(statement: Statement): boolean {
  return !isRead(statement) && OF_ACCOUNTS.test(statement.sql)
}
