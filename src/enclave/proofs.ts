import type { ProviderProof } from '../protocol/provider-proof.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import type { MessageKey } from '../verify/providers/judged-evidence.ts'
import type { VerifiedEvidence } from './adapters/verified-evidence.ts'
import type { LoadedConfig } from './config/load-config.ts'

/** The attestation status of the daemon's providers. */
export interface ProviderProofs {
  /** Adopts the providers of a configuration, and starts to verify new ones. */
  configure(loaded: LoadedConfig): void
  /** Stops background work. */
  close(): void
  list(): readonly ProviderProof[]
  /** How to reach a provider with verified and unexpired evidence; undefined for every other one. */
  channel(provider: string): ProviderChannel | undefined
  /**
   * Verifies again because the peer no longer holds the key of this evidence. Concurrent calls share one
   * verification, and evidence that has been replaced meanwhile is not verified again.
   */
  reverify(provider: string, stale: VerifiedEvidence): Promise<ProviderChannel | undefined>
  /** Stops using this evidence until the next verification succeeds. */
  distrust(provider: string, evidence: VerifiedEvidence): void
  /**
   * The `inference_attestation` of an exchange whose connection was pinned to this evidence; null for a provider
   * without attestation. Undefined when no such evidence was ever verified for the provider: the exchange must not be
   * signed.
   */
  hop(provider: string, evidenceSha256: string | null): ProvenHop | undefined
  /** Raw evidence by digest. */
  evidence(sha256: string): Uint8Array | undefined
}

/** A provider that may be called now, and the key that every connection to it must prove. */
export interface ProviderChannel {
  readonly provider: string
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly webPki: boolean
  readonly evidence: VerifiedEvidence
}

export interface ProvenHop {
  readonly block: AttestationBlock
  /** Digests of evidence that the block refers to but does not contain. */
  readonly evidenceRefs: readonly string[]
  /** The key that signs the provider's answers. */
  readonly messageKey?: MessageKey | undefined
}
