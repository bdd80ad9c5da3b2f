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

/** What a file is to become, written beside it. */
export interface Draft {
  /** Puts the draft in place of the file. */
  replace(): void
  /** Leaves nothing of the draft. To be called in the end whatever happened, also after `replace`. */
  discard(): void
}

/**
 * Replaces or creates a file atomically: a concurrent reader gets all of the old bytes or all of the new ones. A
 * symbolic link is kept, and its target is replaced. An existing file keeps its mode.
 * @param path in a directory that exists
 * @param mode for a new file
 * @throws the error of the file system; the file is then unchanged, and nothing is left beside it
 */
export function replaceFile(path: string, content: string | Uint8Array, mode: number): void {
  const draft = draftFile(path, content, mode)
  try {
    draft.replace()
  } finally {
    draft.discard()
  }
}

/**
 * The first half of `replaceFile`, after which there is little that can fail: the disk has all of the content.
 *
 * The draft is in a folder of its own, so that programs that replace the file at the same time never write to one draft.
 * @throws as `replaceFile`
 */
export function draftFile(path: string, content: string | Uint8Array, mode: number): Draft {
  const found = statSync(path, { throwIfNoEntry: false })
  const target = found === undefined ? path : realpathSync(path)
  const folder = mkdtempSync(`${target}.`)
  const discard = () => rmSync(folder, { recursive: true, force: true })
  try {
    const draft = join(folder, 'draft')
    writeFileSync(draft, content, { mode })
    if (found !== undefined) chmodSync(draft, found.mode & 0o777)
    return { replace: () => renameSync(draft, target), discard }
  } catch (error) {
    discard()
    throw error
  }
}
