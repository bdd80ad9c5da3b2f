/**
 * Result codes by which SQLite blames the statement and not the engine (sqlite.org/rescode.html). Every
 * other failure (FULL, BUSY, LOCKED, IOERR, CORRUPT, a reset object, a lost connection) means that the
 * engine cannot be relied on.
 */
const REFUSALS = /SQLITE_(CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|AUTH|MISUSE)\b/

/** Whether an error message of SQLite, in a Durable Object or behind D1, blames the statement. */
export function isSqliteRefusal(message: string): boolean {
  return REFUSALS.test(message)
}
