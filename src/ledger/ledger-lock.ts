import { DatabaseSync } from 'node:sqlite'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/**
 * Makes this process the only writer of a ledger until it ends. The lock is SQLite's own, on a file beside the ledger,
 * because the kernel releases it however the process ends.
 * @returns a function that releases the lock; the caller must keep it, since garbage collection would close the connection
 * @throws Error when another process has the lock, or the lock cannot be used
 */
export function lockLedger(path: string): () => void {
  const lock = new DatabaseSync(`${path}.lock`)
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new Error(refusalOf(path, cause), { cause })
  }
  return () => lock.close()
}

/**
 * Names another process only where SQLite says that the file is locked, because an operator would then search for that
 * process.
 */
function refusalOf(path: string, cause: unknown): string {
  const reason = messageOfThrown(cause)
  return reason.includes('locked')
    ? `another process writes the ledger ${path}`
    : `cannot lock ${path}.lock: ${reason}`
}
