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
 * Replaces a file, or makes it: whoever reads it meanwhile gets all of the old bytes or all of the new ones. A link stays, and
 * the file that it leads to is replaced. A file that is there keeps its mode.
 *
 * The draft is in a folder of its own, so that programs that replace the file at the same time never write to one draft.
 * @param path in a directory that exists
 * @param mode of a file that is made
 * @throws the error of the file system; then the file is what it was, and nothing is left beside it
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
