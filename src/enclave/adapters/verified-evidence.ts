import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { AttestationBlock } from '../../protocol/receipt.ts'
import { EvidenceRefused } from './evidence-refused.ts'

/** What every adapter gives back. The names are those of receipts; times are Unix seconds. */
export interface VerifiedEvidence {
  readonly verified: true
  /** The path of verification: `snp-envelope`, `tinfoil-v3-snp`, `dstack-tdx`. */
  readonly verification_mode: string
  /** `hardware`, or a word for what is less than that (docs/egress.md). */
  readonly attestation_strength: string
  readonly binding: ChannelBinding
  readonly verified_at: number
  readonly expires_at: number
  /** SHA-256 of `evidence_raw`, lowercase hex. */
  readonly evidence_digest: string
  readonly evidence_summary: NonNullable<AttestationBlock['evidence_summary']>
  /** JSON; everything it takes to verify again without the provider. */
  readonly evidence_raw: Bytes
  /** Further members of the receipt's attestation block. */
  readonly claims: EvidenceClaims
  /** The key that signs finished completions, where this evidence vouches for one. */
  readonly messageKey?: MessageKey
}

/** What ties a connection to the evidence: the peer must hold this very key. */
interface ChannelBinding {
  /** SHA-256 of the SubjectPublicKeyInfo in DER, lowercase hex. */
  readonly tls_spki_sha256: string
}

export type EvidenceClaims = Pick<
  AttestationBlock,
  | 'tee'
  | 'measurement'
  | 'workload_identity_tag'
  | 'workload_identity_manifest_jws'
  | 'trust_bundle_url'
  | 'trust_bundle_jws'
>

export const MESSAGE_ALGORITHMS = ['ed25519', 'ecdsa'] as const

/** `address`: the raw public key of ed25519, the 20 bytes of an Ethereum address for ecdsa; lowercase hex. */
export interface MessageKey {
  readonly algorithm: (typeof MESSAGE_ALGORITHMS)[number]
  readonly address: string
}

const SPKI_SHA256 = /^[0-9a-f]{64}$/

/**
 * The last gate of every adapter: a result that cannot be enforced on a connection is none, whatever it says of
 * itself. Throws `EvidenceRefused`.
 */
export async function admitEvidence(
  evidence: VerifiedEvidence,
  now: number,
): Promise<VerifiedEvidence> {
  const { binding, verified, expires_at: end, evidence_digest: digest } = evidence
  const bound = SPKI_SHA256.test(binding.tls_spki_sha256)
  if (!bound || !verified) throw new EvidenceRefused('no_binding')
  if (!(end * 1000 > now)) throw new EvidenceRefused('expired')
  if ((await sha256Hex(evidence.evidence_raw)) !== digest) throw new EvidenceRefused('malformed')
  return evidence
}
