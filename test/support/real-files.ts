import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { copyBytes, type Bytes } from '../../src/protocol/bytes.ts'

/** Evidence of real machines, which lies beside a checkout and is no part of it; tests skip without it. */
export const REAL_FOLDER = fileURLToPath(
  new URL('../../../shared/data/attestation/', import.meta.url),
)

export const hasRealFiles = existsSync(REAL_FOLDER)

export function readRealFile(name: string): Bytes {
  return copyBytes(readFileSync(REAL_FOLDER + name))
}
