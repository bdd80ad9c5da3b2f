import type { Bytes } from '../../protocol/bytes.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import type { PublishedRecord } from './provenance.ts'
import { isTinfoilV2, readTinfoilV2 } from './tinfoil-v2.ts'
import { readTinfoilV3 } from './tinfoil-v3.ts'

/** A parsed document of either version: the CPU's evidence, what it must state, and the collateral. */
export interface TinfoilDocument {
  readonly version: 'v2' | 'v3'
  readonly platform: 'snp' | 'tdx'
  /** The report or the quote. */
  readonly evidence: Bytes
  /** The required 64 bytes of REPORT_DATA. */
  readonly reportData: Bytes
  readonly tlsSpkiSha256: string
  readonly nonceBound: boolean
  readonly devices: readonly { readonly kind: string; readonly vendor: string }[]
  readonly collateral: TinfoilCollateral
}

/** Vendors' documents inside the document; each is verified by its own signatures. */
export interface TinfoilCollateral {
  /** VEK, ASK, ARK in PEM. */
  readonly snpChainPem?: string
  readonly snpRevocationList?: Bytes
  /** Public build records of the code in the enclave, and of the machine. */
  readonly code?: PublishedRecord
  readonly platform?: PublishedRecord
  /** Intel's answers, by path and query of their addresses. */
  readonly pcs?: ReadonlyMap<string, { body: Bytes; headers: ReadonlyMap<string, string> }>
}

/**
 * Parses a document that was requested with this nonce. A host that only knows version 2 answers with that.
 * @throws MalformedEvidence when the document cannot be parsed
 * @throws EvidenceRefused when it is not bound to the nonce, or too large
 */
export async function readTinfoilDocument(
  text: string | Bytes,
  nonce: string,
): Promise<TinfoilDocument> {
  const json = parseStrictJson(text, 'Tinfoil document')
  return isTinfoilV2(json) ? readTinfoilV2(json) : readTinfoilV3(json, nonce)
}
