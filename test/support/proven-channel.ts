import type { VerifiedEvidence } from '../../src/enclave/adapters/verified-evidence.ts'
import type { ProviderChannel, ProvenProviders } from '../../src/enclave/proofs.ts'

/** Evidence that binds this TLS key. */
export function evidenceFor(spki: string, digest = 'e1'): VerifiedEvidence {
  return {
    verified: true,
    verification_mode: 'test',
    checks: [],
    attestation_strength: 'simulated',
    binding: { tls_spki_sha256: spki },
    verified_at: 0,
    expires_at: 4_000_000_000,
    evidence_digest: digest.repeat(32),
    evidence_summary: {},
    evidence_raw: new Uint8Array(),
    claims: {},
  }
}

/** Proofs of one provider, which count what is asked of them. */
export interface CountedProofs extends ProvenProviders {
  readonly reverified: number
  readonly distrusted: number
}

/** Proofs of the provider `nova`; `spkis` are the keys that it is proven to hold at first and after each new verification. */
export function proofsOf(
  reach: Omit<ProviderChannel, 'evidence'>,
  spkis: readonly (string | undefined)[],
): CountedProofs {
  let at = 0
  let reverified = 0
  let distrusted = 0
  const channel = (): ProviderChannel | undefined => {
    const spki = spkis[at]
    return spki === undefined ? undefined : { ...reach, evidence: evidenceFor(spki, `e${at}`) }
  }
  return {
    get reverified() {
      return reverified
    },
    get distrusted() {
      return distrusted
    },
    list: () => [
      { provider: 'nova', adapter: 'envelope' },
      { provider: 'vega', adapter: 'none' },
    ],
    channel: (name) => (name === 'nova' ? channel() : undefined),
    unattested: (name, baseUrl) =>
      name === 'vega' && baseUrl === reach.baseUrl
        ? { provider: name, baseUrl, publicOnly: false, evidence: null }
        : undefined,
    async reverify() {
      reverified++
      at++
      return channel()
    },
    distrust: () => void distrusted++,
    hop: () => undefined,
  }
}
