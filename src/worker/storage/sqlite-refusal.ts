/**
 * Result codes with which SQLite reports a fault of the statement, not of the engine (sqlite.org/rescode.html). Every
 * other failure (FULL, BUSY, LOCKED, IOERR, CORRUPT, a reset object, a lost connection) means that the engine cannot be
 * relied on.
 */
const REFUSALS = /SQLITE_(CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|AUTH|MISUSE)\b/

/**
 * SQLite has no code of its own for them. All of them are made before the first batch, so this is not the router's file, or not
 * all of it.
 */
const UNREADABLE = /\bno such (table|column): /

/** Whether an error message of SQLite, in a Durable Object or behind D1, is about one statement, so that others need not fail with it. */
export function isOfStatement(message: string): boolean {
  return REFUSALS.test(message)
}

/** Whether such a message reports a fault of the statement, and not that the file lacks what it names. */
export function isSqliteRefusal(message: string): boolean {
  return isOfStatement(message) && !UNREADABLE.test(message)
}
