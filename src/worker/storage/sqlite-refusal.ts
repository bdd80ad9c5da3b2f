/**
 * Result codes with which SQLite reports a fault of the statement, not of the engine (sqlite.org/rescode.html). After any
 * other failure (FULL, BUSY, LOCKED, IOERR, CORRUPT, a reset object, a lost connection), the engine cannot be relied on.
 */
const REFUSALS = /SQLITE_(CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|AUTH|MISUSE)\b/

/**
 * Missing tables and columns, for which SQLite has no code of its own. Migrations make all of them before the first batch,
 * so this is not the router's file, or not all of it.
 */
const UNREADABLE = /\bno such (table|column): /

/**
 * Whether an error message of SQLite, in a Durable Object or from D1, concerns a single statement, so that other batches
 * need not fail with it.
 */
export function isOfStatement(message: string): boolean {
  return REFUSALS.test(message)
}

/** Whether an error message reports a fault of the statement itself, and not that the file lacks a table or column. */
export function isSqliteRefusal(message: string): boolean {
  return isOfStatement(message) && !UNREADABLE.test(message)
}
