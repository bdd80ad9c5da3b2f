import type { AttestationBlock } from '../../protocol/receipt.ts'
import type { Platform } from '../../protocol/boot.ts'
import { fromBase64 } from '../../protocol/bytes.ts'
import { readReport } from '../../verify/snp/report.ts'
import { productOfCpuid } from '../../verify/snp/product.ts'
import { readTcb } from '../../verify/snp/tcb.ts'
import type { KeptEnvelope } from '../envelope/envelope-keeper.ts'

/** Evidence up to this size stands in the receipt itself. */
export const INLINE_EVIDENCE_BYTES = 8192

/** How the daemon verifies its own hop: the whole envelope, as a client would. */
export const ROUTER_VERIFICATION_MODE = 'snp-envelope'

/** The `router_attestation` of every receipt signed under this envelope. */
export interface RouterHop {
  readonly block: AttestationBlock
  /** Digests of evidence that the block refers to and does not hold. */
  readonly evidenceRefs: readonly string[]
}

export interface RouterHopInputs {
  readonly envelope: KeptEnvelope
  readonly trustBundleJws: string
  readonly platform: Platform
}

/** Says in a receipt's terms what the envelope proves of this router. */
export function describeRouterHop({
  envelope,
  trustBundleJws,
  platform,
}: RouterHopInputs): RouterHop {
  const size = Buffer.byteLength(envelope.json)
  const inline = size <= INLINE_EVIDENCE_BYTES
  const block: AttestationBlock = {
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
  return { block, evidenceRefs: inline ? [] : [envelope.sha256] }
}

const STRENGTH: Readonly<Record<Platform, string>> = {
  simulated: 'simulated',
  'configfs-tsm': 'hardware',
}

const DEBUG_ALLOWED = 1n << 19n

/** Fields of stable meaning for policies, under the names of RFC 9711 where it has one. */
function summarize({ envelope }: KeptEnvelope): AttestationBlock['evidence_summary'] {
  const report = readReport(fromBase64(envelope.snp_report_b64))
  const { family = -1, model = -1 } = report.cpuid ?? {}
  const product = productOfCpuid(family, model)
  return {
    product: product ?? 'unknown',
    report_version: report.version,
    guest_svn: report.guestSvn,
    vmpl: report.vmpl,
    dbgstat: (report.policy & DEBUG_ALLOWED) === 0n ? 'disabled' : 'enabled',
    policy: `0x${report.policy.toString(16)}`,
    platform_info: `0x${report.platformInfo.toString(16)}`,
    reported_tcb: product === undefined ? null : { ...readTcb(product, report.reportedTcb) },
    envelope_issued_at: envelope.issued_at,
    tls_spki_sha256: envelope.tls_spki_sha256,
    receipt_key_bound: envelope.report_data_binding !== undefined,
  }
}
