import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { copyBytes, type Bytes } from '../../src/protocol/bytes.ts'

/** Evidence of real machines; its README says where each file comes from. */
export const REAL_FOLDER = fileURLToPath(new URL('../fixtures/', import.meta.url))

export function readRealFile(name: string): Bytes {
  return copyBytes(readFileSync(REAL_FOLDER + name))
}
