import type { ProviderConfig, RouterConfig } from '../protocol/config.ts'
import type { ProviderProof } from '../protocol/link.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'

/** What the daemon knows of the attestation of its providers. */
export interface ProviderProofs {
  /** Takes over the providers of a configuration. */
  configure(providers: RouterConfig['providers']): void
  /** Ends background work. */
  close(): void
  list(): readonly ProviderProof[]
  /**
   * The `inference_attestation` of an exchange whose connection was pinned to this evidence; null for a provider
   * that is reached without attestation. Undefined when no such evidence was ever verified for the provider: the
   * exchange must not be signed.
   */
  hop(provider: string, evidenceSha256: string | null): ProvenHop | undefined
  /** Raw evidence by digest. */
  evidence(sha256: string): Uint8Array | undefined
}

export interface ProvenHop {
  readonly block: AttestationBlock
  /** Digests of evidence that the block refers to and does not hold. */
  readonly evidenceRefs: readonly string[]
}

const UNATTESTED: ProvenHop = {
  block: {
    tee: 'unknown',
    verified: false,
    verification_mode: 'none',
    attestation_strength: 'none',
  },
  evidenceRefs: [],
}

/** Proofs for providers that have none: every adapter but `none` is reported as failed, so it is refused. */
export function createUnattestedProofs(): ProviderProofs {
  let current: RouterConfig['providers'] = {}
  /** Never shrinks: an exchange may end after a reload that dropped its provider. */
  const everUnattested = new Set<string>()
  return {
    configure(providers) {
      current = providers
      for (const [name, { attestation }] of Object.entries(providers)) {
        if (attestation.adapter === 'none') everUnattested.add(name)
      }
    },
    close: () => {},
    list: () => Object.entries(current).map(([name, provider]) => describe(name, provider)),
    hop: (provider, evidenceSha256) =>
      evidenceSha256 === null && everUnattested.has(provider) ? UNATTESTED : undefined,
    evidence: () => undefined,
  }
}

function describe(provider: string, { attestation: { adapter } }: ProviderConfig): ProviderProof {
  const unattested = adapter === 'none'
  return {
    provider,
    adapter,
    state: unattested ? 'unattested' : 'failed',
    reason: unattested ? null : 'adapter not available',
    verified_at: null,
    expires_at: null,
  }
}
