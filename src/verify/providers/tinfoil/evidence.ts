import * as z from 'zod'
import { hex32 } from '../../../protocol/hex-schema.ts'
import type { Bytes } from '../../../protocol/bytes.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { storedCollateralSchema } from '../../tdx/stored-collateral.ts'
import type { EvidenceClaims, JudgedEvidence, JudgeOptions } from '../judged-evidence.ts'
import { publishedRecordSchema, type PublishedRecord } from '../provenance.ts'

/** Everything needed to judge a Tinfoil enclave, in the form kept with receipts. */
export const tinfoilEvidenceSchema = z.strictObject({
  adapter: z.literal('tinfoil'),
  /** The document as it was served. */
  document: z.string(),
  /** The nonce that this program sent. */
  nonce: hex32,
  /** The TLS key of the peer that served the document. */
  tls_spki_sha256: hex32,
  /** Collateral that the document lacked. */
  fetched: z.strictObject({
    snp_chain_pem: z.string().optional(),
    snp_crl_base64: z.string().optional(),
    tdx_collateral: storedCollateralSchema.optional(),
    code: publishedRecordSchema.optional(),
    platform: publishedRecordSchema.optional(),
  }),
})
export type TinfoilEvidence = z.output<typeof tinfoilEvidenceSchema>

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

/** The result of judging the CPU's evidence. */
export interface TinfoilVerdict {
  readonly strength: 'hardware' | 'simulated'
  readonly claims: EvidenceClaims
  readonly summary: JudgedEvidence['evidence_summary']
  /** The names of the checks that held. */
  readonly checks: readonly string[]
  /** When the first of the vendor's documents expires, in milliseconds since 1970. */
  readonly endsAt: number
}

/**
 * Judges the CPU's evidence of one platform.
 * @throws EvidenceRefused with the code of the first step that fails
 * @throws MalformedEvidence when report, quote or collateral cannot be parsed
 */
export type JudgePlatform = (
  document: TinfoilDocument,
  fetched: TinfoilEvidence['fetched'],
  policy: PolicyOf<'tinfoil'>,
  options: JudgeOptions,
) => Promise<TinfoilVerdict>
