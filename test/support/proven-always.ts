import type { ProviderChannel, ProvenProviders } from '../../src/enclave/proofs.ts'

/** Proofs in which one provider is verified, for good, with the TLS key given. */
export function provenAlways(
  provider: string,
  baseUrl: string,
  spkiSha256: string,
): ProvenProviders {
  const channel: ProviderChannel = {
    provider,
    baseUrl,
    apiKey: 'key',
    webPki: false,
    evidence: {
      attestation_strength: 'simulated',
      binding: { tls_spki_sha256: spkiSha256 },
      verified_at: 0,
      expires_at: 4_000_000_000,
      evidence_digest: 'e0'.repeat(32),
    },
  }
  return {
    list: () => [{ provider, adapter: 'envelope' }],
    channel: (name) => (name === provider ? channel : undefined),
    unattested: () => undefined,
    reverify: async () => channel,
    distrust: () => {},
    hop: () => undefined,
  }
}
