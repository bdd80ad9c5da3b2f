import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Creates an empty directory, deleting any previous content. @returns its path */
export function emptyDirectory(parent: string, name: string): string {
  const path = join(parent, name)
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  return path
}
