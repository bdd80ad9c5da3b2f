import {
  chmodSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * Replaces or creates a file atomically: a concurrent reader gets all of the old bytes or all of the new ones. A
 * symbolic link is kept, and its target is replaced. An existing file keeps its mode.
 *
 * The draft is in a folder of its own, so that programs that replace the file at the same time never write to one
 * draft.
 * @param path in a directory that exists
 * @param mode for a new file
 * @throws the error of the file system; the file is then unchanged, and nothing is left beside it
 */
export function replaceFile(path: string, content: string | Uint8Array, mode: number): void {
  const found = statSync(path, { throwIfNoEntry: false })
  const target = found === undefined ? path : realpathSync(path)
  const folder = mkdtempSync(`${target}.`)
  try {
    const draft = join(folder, 'draft')
    writeFileSync(draft, content, { mode })
    if (found !== undefined) chmodSync(draft, found.mode & 0o777)
    renameSync(draft, target)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
