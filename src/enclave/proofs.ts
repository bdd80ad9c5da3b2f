import type { ProviderProof } from '../protocol/link.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import type { MessageKey } from '../verify/providers/judged-evidence.ts'
import type { VerifiedEvidence } from './adapters/verified-evidence.ts'
import type { LoadedConfig } from './config/load-config.ts'

/** What the daemon knows of the attestation of its providers. */
export interface ProviderProofs {
  /** Takes over the providers of a configuration, and starts to verify those that are new. */
  configure(loaded: LoadedConfig): void
  /** Ends background work. */
  close(): void
  list(): readonly ProviderProof[]
  /** How to reach a provider whose evidence is verified and in date; undefined for every other one. */
  channel(provider: string): ProviderChannel | undefined
  /**
   * Verifies anew because the peer no longer holds the key of this evidence; calls at the same time share one
   * verification, and evidence that has been replaced meanwhile is not verified again.
   */
  reverify(provider: string, stale: VerifiedEvidence): Promise<ProviderChannel | undefined>
  /** Gives up this evidence until the next verification succeeds. */
  distrust(provider: string, evidence: VerifiedEvidence): void
  /**
   * The `inference_attestation` of an exchange whose connection was pinned to this evidence; null for a provider
   * that is reached without attestation. Undefined when no such evidence was ever verified for the provider: the
   * exchange must not be signed.
   */
  hop(provider: string, evidenceSha256: string | null): ProvenHop | undefined
  /** Raw evidence by digest. */
  evidence(sha256: string): Uint8Array | undefined
}

/** A provider that may be called now, and what every connection to it must prove. */
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
  /** Digests of evidence that the block refers to and does not hold. */
  readonly evidenceRefs: readonly string[]
  /** The key that signs the provider's answers. */
  readonly messageKey?: MessageKey | undefined
}
