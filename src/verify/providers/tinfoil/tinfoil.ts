import { toHex } from '../../../protocol/bytes.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { JudgedEvidence, JudgeOptions } from '../judged-evidence.ts'
import { readTinfoilDocument } from './document.ts'
import type { JudgePlatform, TinfoilDocument, TinfoilEvidence } from './evidence.ts'
import { judgeTinfoilSnp } from './snp.ts'
import { judgeTinfoilTdx } from './tdx.ts'

const JUDGES: Readonly<Record<TinfoilDocument['platform'], JudgePlatform>> = {
  snp: judgeTinfoilSnp,
  tdx: judgeTinfoilTdx,
}

/**
 * Judges a Tinfoil enclave: the document bound to nonce and TLS key, the hardware, and the measurement.
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
    checks: [...(document.nonceBound ? ['nonce'] : []), 'tls_key', ...verdict.checks],
    binding: { tls_spki_sha256: document.tlsSpkiSha256 },
    evidence_summary: {
      ...verdict.summary,
      nonce_bound: document.nonceBound,
      report_data: toHex(document.reportData),
      gpu: { devices: document.devices.length, verified: false, source: 'provider_asserted' },
    },
    claims: verdict.claims,
    endsAt: verdict.endsAt,
  }
}

/** Requires that the document is for our nonce, where the policy requires one, and for the connection's key. */
export function requireTinfoilBinding(
  document: TinfoilDocument,
  tlsSpkiSha256: string,
  policy: PolicyOf<'tinfoil'>,
): void {
  if (!document.nonceBound && policy.nonce === 'required') throw new EvidenceRefused('nonce')
  if (document.tlsSpkiSha256 !== tlsSpkiSha256) throw new EvidenceRefused('tls_key')
}
