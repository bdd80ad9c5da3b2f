import { DatabaseSync } from 'node:sqlite'
import { ReleaseError } from '../release-error.ts'

/**
 * Makes this process the only one that signs with a log's key until it ends: two that append at a time would sign two
 * trees of one size and leave files that belong to neither. The lock is SQLite's own on a file beside the key, because
 * the kernel releases it however the process ends.
 * @returns releases it; to be kept, since a connection that nothing refers to would be closed
 * @throws ReleaseError when another process has it
 */
export function lockLog(keyPath: string): () => void {
  const lock = new DatabaseSync(`${keyPath}.lock`)
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new ReleaseError(
      `another program signs with ${keyPath} at the moment: try again once it has ended`,
      { cause },
    )
  }
  return () => lock.close()
}
