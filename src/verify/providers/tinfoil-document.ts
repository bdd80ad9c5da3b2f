import type { Bytes } from '../../protocol/bytes.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import type { PublishedRecord } from './provenance.ts'
import { isTinfoilV2, readTinfoilV2 } from './tinfoil-v2.ts'
import { readTinfoilV3 } from './tinfoil-v3.ts'

/** A document of either version, read: what the CPU says, what it must say, and what comes with it. */
export interface TinfoilDocument {
  readonly version: 'v2' | 'v3'
  readonly platform: 'snp' | 'tdx'
  /** The report or the quote. */
  readonly evidence: Bytes
  /** The 64 bytes that REPORT_DATA must be. */
  readonly reportData: Bytes
  readonly tlsSpkiSha256: string
  readonly nonceBound: boolean
  readonly devices: readonly { readonly kind: string; readonly vendor: string }[]
  readonly collateral: TinfoilCollateral
}

/** Vendors' documents that came along; each is verified by its own signatures. */
export interface TinfoilCollateral {
  /** VEK, ASK, ARK in PEM. */
  readonly snpChainPem?: string
  readonly snpRevocationList?: Bytes
  /** Public build records of what runs in the enclave, and of the machine it is in. */
  readonly code?: PublishedRecord
  readonly platform?: PublishedRecord
  /** Intel's answers by the path and query of their addresses. */
  readonly pcs?: ReadonlyMap<string, { body: Bytes; headers: ReadonlyMap<string, string> }>
}

/**
 * Reads a document that was asked for with this nonce. A host that only knows version 2 answers with that.
 * @throws MalformedEvidence when the document cannot be read
 * @throws EvidenceRefused when the document is not bound to the nonce
 */
export async function readTinfoilDocument(
  text: string | Bytes,
  nonce: string,
): Promise<TinfoilDocument> {
  const json = parseStrictJson(text, 'Tinfoil document')
  return isTinfoilV2(json) ? readTinfoilV2(json) : readTinfoilV3(json, nonce)
}
