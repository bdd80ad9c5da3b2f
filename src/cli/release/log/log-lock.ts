import { realpathSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ReleaseError } from '../release-error.ts'

/**
 * Makes this process the only one that signs with the key of a log or a witness until it ends: two that append at a time
 * would sign two trees of one size and leave files that belong to neither, and two witnesses with one state could each cosign
 * another tree after the last. The lock is SQLite's own on a file beside the key, because
 * the kernel releases it however the process ends.
 * @returns releases it; to be kept, since a connection that nothing refers to would be closed
 * @throws ReleaseError when another process has it, or the lock cannot be written
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
