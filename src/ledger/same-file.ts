import { statSync } from 'node:fs'

/** How the files of an open database were damaged by somebody else. */
export type FileLoss = 'moved' | 'short' | 'logGone'

/** The error message for each, with the SQLite code that fits best. */
const REASONS: Readonly<Record<FileLoss, string>> = {
  moved: 'the file of the database was moved or replaced: SQLITE_READONLY',
  short: 'the file of the database was cut short: SQLITE_CORRUPT',
  logGone: 'the write-ahead log of the database was removed: SQLITE_READONLY',
}

/** The files of an open database were replaced, cut short or removed: it must not be used any more. */
export class FileLost extends Error {
  readonly loss: FileLoss

  constructor(loss: FileLoss) {
    super(REASONS[loss])
    this.name = 'FileLost'
    this.loss = loss
  }
}

/**
 * Detects damage to the files of an open database. What is written to a deleted or replaced file, or write-ahead log, is
 * lost when the process ends, and SQLite itself checks for that only without a write-ahead log. Into a file that was cut
 * short, SQLite would write pages without the pages before them.
 * @param bytes the size of the database as SQLite counts it: VACUUM may have made the database smaller
 * @returns a check to be called before each use of the database; it throws FileLost where a path names another file than at
 *   first, or none, or the database has become shorter
 */
export function watchFile(path: string, bytes: () => bigint): () => void {
  let size = 0n
  const isOpened = sameAsAtFirst(path)
  // SQLite creates the log with the first read or write, empties it, and removes it with the last connection.
  const isLog = sameAsAtFirst(`${path}-wal`)
  return () => {
    const found = isOpened()
    if (found === 'other') throw new FileLost('moved')
    if (found !== undefined && found < size && found < bytes()) throw new FileLost('short')
    size = found ?? size
    if (isLog() === 'other') throw new FileLost('logGone')
  }
}

/**
 * @returns a check for one path: the size of its file as long as it is the file that was first found there, else `other`;
 *   undefined while no file has been found yet
 */
function sameAsAtFirst(path: string): () => bigint | 'other' | undefined {
  const look = () => statSync(path, { bigint: true, throwIfNoEntry: false })
  let first = look()
  return () => {
    const found = look()
    first ??= found
    return found?.ino === first?.ino && found?.dev === first?.dev ? found?.size : 'other'
  }
}
