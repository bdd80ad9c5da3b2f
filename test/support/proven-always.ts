import { NO_EVIDENCE } from '../../src/enclave/proofs/evidence-refresher.ts'
import type { ProviderChannel, ProviderProofs } from '../../src/enclave/proofs.ts'

/** Proofs in which one provider is verified, for good, with the TLS key given. */
export function provenAlways(
  provider: string,
  baseUrl: string,
  spkiSha256: string,
): ProviderProofs {
  const channel: ProviderChannel = {
    provider,
    baseUrl,
    apiKey: 'key',
    webPki: false,
    evidence: {
      verified: true,
      verification_mode: 'test',
      checks: [],
      attestation_strength: 'simulated',
      binding: { tls_spki_sha256: spkiSha256 },
      verified_at: 0,
      expires_at: 4_000_000_000,
      evidence_digest: 'e0'.repeat(32),
      evidence_summary: {},
      evidence_raw: new Uint8Array(),
      claims: {},
    },
  }
  const standing = { ...NO_EVIDENCE, adapter: 'envelope', state: 'verified', reason: null } as const
  return {
    configure: () => {},
    close: () => {},
    list: () => [{ ...standing, provider }],
    channel: (name) => (name === provider ? channel : undefined),
    reverify: async () => channel,
    distrust: () => {},
    hop: () => undefined,
    evidence: () => undefined,
  }
}
