import { realpathSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ReleaseError } from '../release-error.ts'

/**
 * Takes an exclusive lock for signing with the key of a log or a witness, held until released or the process ends. Two
 * concurrent appends would sign two trees of the same size and leave files that belong to neither; two witnesses with
 * one state could cosign two different successors of the same tree. It is SQLite's own lock on a file beside the key,
 * which the kernel releases however the process ends.
 * @returns releases the lock; keep a reference to it, because garbage collection would close the connection and so
 *   release the lock
 * @throws ReleaseError when another process holds the lock, or the lock file cannot be written
 */
export function lockLog(keyPath: string): () => void {
  const path = `${realpathSync(keyPath)}.lock`
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(path)
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock?.close()
    throw new ReleaseError(
      isBusy(cause)
        ? `another program signs with ${keyPath} at the moment: try again once it has ended`
        : `${path}, by which one program at a time signs with this key, cannot be written`,
      { cause },
    )
  }
  const held = lock
  return () => held.close()
}

/** SQLite's code for a file that another connection has locked. */
const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}
