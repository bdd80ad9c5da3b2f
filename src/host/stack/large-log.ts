import {
  closeSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'

const MAX_LOG_BYTES = 16 * 1024 * 1024
const CHUNK_BYTES = 1024 * 1024

/** Renames a large log before it is opened, replacing the one that was renamed before. */
export function setAsideLargeLog(path: string): void {
  if (isLarge(path)) renameSync(path, asideOf(path))
}

/**
 * Like `setAsideLargeLog`, for a log that processes have open for appending: the log is copied, then emptied. A line
 * that is written in the few microseconds between the last read and the emptying is lost. Where there is no room for
 * the copy, as on a full disk, the log stays as it is.
 */
export function emptyLargeLog(path: string): void {
  if (!isLarge(path)) return
  const aside = asideOf(path)
  const log = openSync(path, 'r+')
  try {
    copyTo(aside, log)
    ftruncateSync(log)
  } catch {
    rmSync(aside, { force: true })
  } finally {
    closeSync(log)
  }
}

function asideOf(path: string): string {
  return `${path}.1`
}

function isLarge(path: string): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return size > MAX_LOG_BYTES
}

/** @throws Error where the copy cannot be written completely */
function copyTo(path: string, from: number): void {
  const to = openSync(path, 'w', 0o600)
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (let at = 0; ;) {
      const count = readSync(from, chunk, 0, CHUNK_BYTES, at)
      if (count === 0) return
      if (writeSync(to, chunk, 0, count) < count) throw new Error('the disk is full')
      at += count
    }
  } finally {
    closeSync(to)
  }
}
