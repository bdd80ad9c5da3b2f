import * as z from 'zod'
import { toHex } from '../../protocol/bytes.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { storedCollateralSchema } from '../tdx/stored-collateral.ts'
import type { EvidenceClaims, JudgedEvidence, JudgeOptions } from './judged-evidence.ts'
import { publishedRecordSchema } from './provenance.ts'
import { readTinfoilDocument, type TinfoilDocument } from './tinfoil-document.ts'
import { judgeTinfoilSnp } from './tinfoil-snp.ts'
import { judgeTinfoilTdx } from './tinfoil-tdx.ts'

const hex32 = z.string().regex(/^[0-9a-f]{64}$/)

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

/** The result of judging the CPU's evidence. */
export interface TinfoilVerdict {
  readonly strength: 'hardware' | 'simulated'
  readonly claims: EvidenceClaims
  readonly summary: JudgedEvidence['evidence_summary']
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

const JUDGES: Readonly<Record<TinfoilDocument['platform'], JudgePlatform>> = {
  snp: judgeTinfoilSnp,
  tdx: judgeTinfoilTdx,
}

/**
 * Judges a Tinfoil enclave: document parsed and bound to nonce and TLS key -> hardware -> measurement.
 * @throws EvidenceRefused when a check fails or the policy is not met
 * @throws MalformedEvidence when the document cannot be parsed
 */
export async function judgeTinfoil(
  evidence: TinfoilEvidence,
  policy: PolicyOf<'tinfoil'>,
  options: JudgeOptions,
): Promise<JudgedEvidence> {
  const document = await readTinfoilDocument(evidence.document, evidence.nonce)
  requireTinfoilBinding(document, evidence.tls_spki_sha256, policy)
  const verdict = await JUDGES[document.platform](document, evidence.fetched, policy, options)
  return {
    verification_mode: `tinfoil-${document.version}-${document.platform}`,
    attestation_strength: verdict.strength,
    binding: { tls_spki_sha256: document.tlsSpkiSha256 },
    evidence_summary: {
      ...verdict.summary,
      nonce_bound: document.nonceBound,
      report_data: toHex(document.reportData),
      gpu: { devices: document.devices.length, verified: false, source: 'provider_asserted' },
    },
    claims: verdict.claims,
  }
}

/** The document must be for our nonce, where the policy requires one, and for the key of the connection. */
export function requireTinfoilBinding(
  document: TinfoilDocument,
  tlsSpkiSha256: string,
  policy: PolicyOf<'tinfoil'>,
): void {
  if (!document.nonceBound && policy.nonce === 'required') throw new EvidenceRefused('nonce')
  if (document.tlsSpkiSha256 !== tlsSpkiSha256) throw new EvidenceRefused('tls_key')
}
