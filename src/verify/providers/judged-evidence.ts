import type { AttestationBlock } from '../../protocol/receipt.ts'
import type { Anchor, SimulatedPolicy } from '../snp/anchors.ts'
import type { VerifyQuote } from '../tdx/quote.ts'
import type { VerifyProvenance } from './provenance.ts'

/** What judging takes beside evidence and policy. Nothing of it reaches a network. */
export interface JudgeOptions {
  /** As of when, in milliseconds since 1970. */
  readonly now: number
  readonly simulated: SimulatedPolicy
  readonly verifyQuote: VerifyQuote
  /** Where it is absent, no policy that asks for provenance is met. */
  readonly verifyProvenance?: VerifyProvenance | undefined
  /** AMD's roots unless given. */
  readonly anchors?: readonly Anchor[]
}

/** What evidence comes to under a policy. The names are those of receipts. */
export interface JudgedEvidence {
  /** The path of verification: `snp-envelope`, `tinfoil-v3-snp`, `dstack-tdx`. */
  readonly verification_mode: string
  /** `hardware`, or a word for what is less than that (docs/egress.md). */
  readonly attestation_strength: string
  readonly binding: ChannelBinding
  readonly evidence_summary: NonNullable<AttestationBlock['evidence_summary']>
  /** What cannot be checked again and relies on the party that recorded the evidence. */
  readonly onRecord?: readonly string[]
  /** Further members of the receipt's attestation block. */
  readonly claims: EvidenceClaims
  /** The key that signs finished completions, where this evidence vouches for one. */
  readonly messageKey?: MessageKey
}

/** Genuine hardware under an operating system that nobody compared with anything: whatever that says of itself. */
export const OS_UNPINNED = 'hardware-os-unpinned'

/** Whether evidence of this strength proves which workload answers, as far as `simulated` hardware proves anything. */
export function isProven({ attestation_strength: strength }: JudgedEvidence): boolean {
  return strength !== OS_UNPINNED
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
