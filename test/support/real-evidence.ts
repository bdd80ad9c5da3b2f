import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { copyBytes, fromHex, type Bytes } from '../../src/protocol/bytes.ts'
import { toPem } from '../../src/enclave/simulated/certificate.ts'
import { splitPem } from './synthetic-snp.ts'

/** Evidence of real machines, which lies beside a checkout and is no part of it; tests skip without it. */
const FOLDER = fileURLToPath(new URL('../../../shared/data/attestation/', import.meta.url))

export const hasRealEvidence = existsSync(FOLDER)

export function realFile(name: string): Bytes {
  return copyBytes(readFileSync(FOLDER + name))
}

export function realPath(name: string): string {
  return FOLDER + name
}

export function realText(name: string): string {
  return readFileSync(FOLDER + name, 'utf8')
}

export function realHex(name: string): Bytes {
  return fromHex(realText(name).trim().toLowerCase())
}

/** A chip certificate in DER with AMD's authority and root for its product. */
export function realChain(leaf: string, product: string, kind: 'vcek' | 'vlek' = 'vcek'): string {
  const [ask = '', ark = '', asvk = ''] = splitPem(realText(`snp/${product}.ask-ark-asvk.pem`))
  return toPem(realFile(leaf)) + (kind === 'vlek' ? asvk : ask) + ark
}
