import { fromHex, type Bytes } from '../../src/protocol/bytes.ts'
import { derToPem } from '../../src/verify/x509/pem.ts'
import { readRealFile } from './real-files.ts'
import { splitPem } from './synthetic-snp.ts'

export function realFile(name: string): Bytes {
  return readRealFile(name)
}

export function realText(name: string): string {
  return new TextDecoder().decode(readRealFile(name))
}

export function realHex(name: string): Bytes {
  return fromHex(realText(name).trim().toLowerCase())
}

/** A chip certificate in DER with AMD's authority and root for its product. */
export function realChain(leaf: string, product: string, kind: 'vcek' | 'vlek' = 'vcek'): string {
  const [ask = '', ark = '', asvk = ''] = splitPem(realText(`snp/${product}.ask-ark-asvk.pem`))
  return derToPem(realFile(leaf)) + (kind === 'vlek' ? asvk : ask) + ark
}
