import { statSync } from 'node:fs'

/** What has happened to the files of a database that is open. */
export type FileLoss = 'moved' | 'short' | 'logGone'

/** What is said of it, with the code that SQLite has for it. */
const REASONS: Readonly<Record<FileLoss, string>> = {
  moved: 'the file of the database was moved or replaced: SQLITE_READONLY',
  short: 'the file of the database was cut short: SQLITE_CORRUPT',
  logGone: 'the write-ahead log of the database was removed: SQLITE_READONLY',
}

/** The database must not be used. */
export class FileLost extends Error {
  readonly loss: FileLoss

  constructor(loss: FileLoss) {
    super(REASONS[loss])
    this.name = 'FileLost'
    this.loss = loss
  }
}

/**
 * Watches over a database that is open. What is written to a file, or a write-ahead log, that was deleted or replaced is gone with
 * the process, and SQLite looks for that only where it has no such log; into a file that was cut short it would write pages
 * without those before them.
 * @param bytes what the database takes by its own account: somebody may have made it smaller with VACUUM
 * @returns to be called before each use of the database; throws FileLost where a path names another file than at first, or none,
 *   or the database has become shorter
 */
export function watchFile(path: string, bytes: () => bigint): () => void {
  let size = 0n
  const isOpened = sameAsAtFirst(path)
  // Made with the first read or write. SQLite empties it, and removes it with the last connection.
  const isLog = sameAsAtFirst(`${path}-wal`)
  return () => {
    const found = isOpened()
    if (found === 'other') throw new FileLost('moved')
    if (found !== undefined && found < size && found < bytes()) throw new FileLost('short')
    size = found ?? size
    if (isLog() === 'other') throw new FileLost('logGone')
  }
}

/** The size of the file that a path named when there was one for the first time; undefined: there was none yet. */
function sameAsAtFirst(path: string): () => bigint | 'other' | undefined {
  const look = () => statSync(path, { bigint: true, throwIfNoEntry: false })
  let first = look()
  return () => {
    const found = look()
    first ??= found
    return found?.ino === first?.ino && found?.dev === first?.dev ? found?.size : 'other'
  }
}
