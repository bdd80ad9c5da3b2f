import type { AttestationBlock } from '../../protocol/receipt.ts'
import type { Anchor, SimulatedPolicy } from '../snp/anchors.ts'
import type { VerifyQuote } from '../tdx/quote.ts'
import type { VerifyProvenance } from './provenance.ts'

/** The parameters of judging besides evidence and policy. Nothing here uses a network. */
export interface JudgeOptions {
  /** The time of judgement, in milliseconds since 1970. */
  readonly now: number
  readonly simulated: SimulatedPolicy
  readonly verifyQuote: VerifyQuote
  /** If absent, no policy that requires provenance is met. */
  readonly verifyProvenance?: VerifyProvenance | undefined
  /** SHA-256 over the SubjectPublicKeyInfo of the root of GPU devices; by default NVIDIA's. */
  readonly gpuRootSpkiSha256?: string | undefined
  /** By default AMD's roots. */
  readonly anchors?: readonly Anchor[]
}

/** The result of judging evidence under a policy. Members are named as in receipts. */
export interface JudgedEvidence {
  /** The verification mode: `snp-envelope`, `tinfoil-v3-snp`, `dstack-tdx`. */
  readonly verification_mode: string
  /** `hardware`, or the name of a lower strength (docs/egress.md). */
  readonly attestation_strength: string
  /** The names of the checks that held, in their order. */
  readonly checks: readonly string[]
  readonly binding: ChannelBinding
  readonly evidence_summary: NonNullable<AttestationBlock['evidence_summary']>
  /** What cannot be verified again and relies on the party that recorded the evidence. */
  readonly onRecord?: readonly string[]
  /** Further members of the receipt's attestation block. */
  readonly claims: EvidenceClaims
  /** The key that signs finished completions, where this evidence binds one. */
  readonly messageKey?: MessageKey
  /**
   * The earliest end of anything that the verdict depends on, whatever age a policy allows, in milliseconds since 1970:
   * a certificate, a vendor's document that is due to be replaced, a token, a keyset.
   */
  readonly endsAt: number
}

/** Genuine hardware whose operating system was not compared with any expected value. */
export const OS_UNPINNED = 'hardware-os-unpinned'

/**
 * Whether evidence of this strength proves which workload answers (for `simulated`, as far as simulated evidence
 * can).
 */
export function isProven({
  attestation_strength: strength,
}: Pick<JudgedEvidence, 'attestation_strength'>): boolean {
  return strength !== OS_UNPINNED
}

/** Binds a connection to the evidence: the peer must hold this key. */
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
  /** The keyset (`sha256:<hex>`) that contains the key, where the answer's signature is an ACI receipt. */
  readonly keyset?: string
  /** For a gateway: keys of the attested nodes behind its models, which sign instead of it. */
  readonly behind?: readonly NodeKey[]
}

export interface NodeKey extends Pick<MessageKey, 'algorithm' | 'address'> {
  /** The provider's name of the model. */
  readonly model: string
}
