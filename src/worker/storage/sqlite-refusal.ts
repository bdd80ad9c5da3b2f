/**
 * Result codes with which SQLite reports a fault of the statement, not of the engine (sqlite.org/rescode.html). Every
 * other failure (FULL, BUSY, LOCKED, IOERR, CORRUPT, a reset object, a lost connection) means that the engine cannot be
 * relied on.
 */
const REFUSALS = /SQLITE_(CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|AUTH|MISUSE)\b/

/** Whether an error message of SQLite, in a Durable Object or behind D1, reports a fault of the statement. */
export function isSqliteRefusal(message: string): boolean {
  return REFUSALS.test(message)
}
