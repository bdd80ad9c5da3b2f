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

/** Everything that judging a Tinfoil enclave takes, as it is kept with receipts. */
export const tinfoilEvidenceSchema = z.strictObject({
  adapter: z.literal('tinfoil'),
  /** As it was served. */
  document: z.string(),
  /** Ours. */
  nonce: hex32,
  /** Of the peer that served the document. */
  tls_spki_sha256: hex32,
  /** What the document did not bring along. */
  fetched: z.strictObject({
    snp_chain_pem: z.string().optional(),
    snp_crl_base64: z.string().optional(),
    tdx_collateral: storedCollateralSchema.optional(),
    code: publishedRecordSchema.optional(),
    platform: publishedRecordSchema.optional(),
  }),
})
export type TinfoilEvidence = z.output<typeof tinfoilEvidenceSchema>

/** What the CPU's evidence comes to. */
export interface TinfoilVerdict {
  readonly strength: 'hardware' | 'simulated'
  readonly claims: EvidenceClaims
  readonly summary: JudgedEvidence['evidence_summary']
}

/**
 * One way to judge the CPU's evidence.
 * @throws EvidenceRefused when the evidence does not meet these rules
 * @throws MalformedEvidence when the input is malformed
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
 * Judges a Tinfoil enclave: document read and bound to nonce and TLS key -> hardware -> measurement.
 * @throws EvidenceRefused when the evidence does not meet the policy
 * @throws MalformedEvidence when the evidence cannot be read
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

/** The document must be for our nonce, where that is asked, and for the key of the very connection. */
export function requireTinfoilBinding(
  document: TinfoilDocument,
  tlsSpkiSha256: string,
  policy: PolicyOf<'tinfoil'>,
): void {
  if (!document.nonceBound && policy.nonce === 'required') throw new EvidenceRefused('nonce')
  if (document.tlsSpkiSha256 !== tlsSpkiSha256) throw new EvidenceRefused('tls_key')
}
