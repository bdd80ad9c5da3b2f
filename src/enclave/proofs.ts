import type { ProviderProof } from '../protocol/provider-proof.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import type { MessageKey } from '../verify/providers/judged-evidence.ts'
import type { VerifiedEvidence } from './adapters/verified-evidence.ts'
import type { LoadedConfig } from './config/load-config.ts'

/** The proofs that calls to providers and their receipts are based on. */
export interface ProvenProviders {
  list(): readonly Pick<ProviderProof, 'provider' | 'adapter'>[]
  /** How to reach a provider with verified and unexpired evidence; undefined for every other one. */
  channel(provider: string): ProviderChannel | undefined
  /**
   * How to reach a provider without attestation at this address. Also finds a provider that had none under an earlier
   * configuration of this process: its call may have begun just before a reload.
   */
  unattested(provider: string, baseUrl: string): UnattestedProvider | undefined
  /**
   * Verifies again because the peer no longer holds the key of this evidence. Concurrent calls share one verification;
   * evidence that was replaced in the meantime is not verified again.
   */
  reverify(provider: string, stale: ChannelEvidence): Promise<ProviderChannel | undefined>
  /** Stops using this evidence until the next verification succeeds. */
  distrust(provider: string, evidence: ChannelEvidence): void
  /**
   * The `inference_attestation` of an exchange whose connection was pinned to this evidence; null for a provider
   * without attestation. Undefined when no such evidence was ever verified for the provider: the exchange must not be
   * signed.
   */
  hop(provider: string, evidenceSha256: string | null): ProvenHop | undefined
}

/** The attestation status of the daemon's providers. */
export interface ProviderProofs extends ProvenProviders {
  /** Adopts the providers of a configuration, and starts to verify new ones. */
  configure(loaded: LoadedConfig): void
  /** Stops background work. */
  close(): void
  list(): readonly ProviderProof[]
  /** All hops that `hop` can find. */
  hops(): readonly KnownHop[]
  /** All providers that `unattested` can find. */
  everUnattested(): readonly UnattestedProvider[]
  /** Raw evidence by digest. */
  evidence(sha256: string): Uint8Array | undefined
}

/** The part of verified evidence that is needed to judge a connection. */
export type ChannelEvidence = Pick<
  VerifiedEvidence,
  'attestation_strength' | 'binding' | 'evidence_digest' | 'expires_at' | 'verified_at'
>

/** A provider that may be called now, and the key that every connection to it must prove. */
export interface ProviderChannel {
  readonly provider: string
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly webPki: boolean
  readonly evidence: ChannelEvidence
}

/** A provider that is called without attestation. */
export interface UnattestedProvider {
  readonly provider: string
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Whether its name must resolve to a public address. */
  readonly publicOnly: boolean
  readonly evidence: null
}

/** A hop, and the arguments with which `ProvenProviders.hop` finds it. */
export interface KnownHop {
  readonly provider: string
  readonly evidenceSha256: string | null
  readonly hop: ProvenHop
}

export interface ProvenHop {
  readonly block: AttestationBlock
  /** Digests of evidence that the block refers to but does not contain. */
  readonly evidenceRefs: readonly string[]
  /** The key that signs the provider's answers. */
  readonly messageKey?: MessageKey | undefined
}
