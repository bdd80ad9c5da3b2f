import { renameSync, statSync } from 'node:fs'

const MAX_LOG_BYTES = 16 * 1024 * 1024

/** Moves a large log aside before it is opened, replacing the one moved before. */
export function setAsideLargeLog(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
}
