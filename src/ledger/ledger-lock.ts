import { DatabaseSync } from 'node:sqlite'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/**
 * Makes this process the only writer of a ledger until it ends. The lock is SQLite's own on a file beside it, because
 * the kernel releases it however the process ends.
 * @returns releases it; to be kept, since a connection that nothing refers to would be closed
 * @throws Error when another process has it, or the lock cannot be used
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

/** Whoever is told of another process looks for one, and not for what is wrong with the file. */
function refusalOf(path: string, cause: unknown): string {
  const reason = messageOfThrown(cause)
  return reason.includes('locked')
    ? `another process writes the ledger ${path}`
    : `cannot lock ${path}.lock: ${reason}`
}
