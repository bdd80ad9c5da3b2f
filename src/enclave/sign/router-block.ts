import { INLINE_EVIDENCE_BYTES, type AttestationBlock } from '../../protocol/receipt.ts'
import type { Platform } from '../../protocol/boot.ts'
import { fromBase64 } from '../../protocol/bytes.ts'
import { summarizeSnp } from '../../verify/snp/snp-summary.ts'
import { readReport } from '../../verify/snp/report.ts'
import type { CachedEnvelope } from '../envelope/envelope-cache.ts'

/** How the daemon verifies its own hop: the complete envelope, like a client. */
export const ROUTER_VERIFICATION_MODE = 'snp-envelope'

/** The `router_attestation` of every receipt signed under this envelope. */
export interface RouterHop {
  readonly block: AttestationBlock & { readonly verified_at: number }
  /** SHA-256 of the configuration bound by the evidence. */
  readonly configurationSha256: string
  /** Digests of evidence that the block refers to but does not contain. */
  readonly evidenceRefs: readonly string[]
}

export interface RouterHopInputs {
  readonly envelope: CachedEnvelope
  readonly trustBundleJws: string
  readonly platform: Platform
}

/** Describes, in the format of receipts, what the envelope proves about this router. */
export function describeRouterHop({
  envelope,
  trustBundleJws,
  platform,
}: RouterHopInputs): RouterHop {
  const size = Buffer.byteLength(envelope.json)
  const inline = size <= INLINE_EVIDENCE_BYTES
  const block: RouterHop['block'] = {
    tee: 'sev-snp',
    measurement: envelope.measurement,
    workload_identity_tag: envelope.envelope.workload_identity_tag,
    workload_identity_manifest_jws: envelope.envelope.workload_identity_manifest_jws,
    trust_bundle_url: envelope.envelope.trust_bundle_url,
    trust_bundle_jws: trustBundleJws,
    verified: envelope.check.verified,
    verification_mode: ROUTER_VERIFICATION_MODE,
    verified_at: envelope.check.verifiedAt,
    attestation_strength: STRENGTH[platform],
    evidence_summary: summarize(envelope),
    evidence_raw: inline ? JSON.parse(envelope.json) : { sha256: envelope.sha256, bytes: size },
  }
  return {
    block,
    configurationSha256: envelope.configurationSha256,
    evidenceRefs: inline ? [] : [envelope.sha256],
  }
}

const STRENGTH: Readonly<Record<Platform, string>> = {
  simulated: 'simulated',
  'configfs-tsm': 'hardware',
}

/** Fields with a stable meaning, on which policies can rely. */
function summarize({ envelope }: CachedEnvelope): AttestationBlock['evidence_summary'] {
  return {
    ...summarizeSnp(readReport(fromBase64(envelope.snp_report_b64))),
    envelope_issued_at: envelope.issued_at,
    tls_spki_sha256: envelope.tls_spki_sha256,
    receipt_key_bound: envelope.report_data_binding !== undefined,
  }
}
