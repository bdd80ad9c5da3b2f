import { afterEach, describe, expect, it } from 'vitest'
import type { VerifiedEvidence } from '../../../src/enclave/adapters/verified-evidence.ts'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import type { ProvenProviders } from '../../../src/enclave/proofs.ts'
import { proveMessage } from '../../../src/enclave/proofs/message-proof.ts'
import { toHex, utf8 } from '../../../src/protocol/bytes.ts'
import { startRecordingProvider, type RecordingProvider } from '../../support/recording-provider.ts'

let provider: RecordingProvider

afterEach(() => provider.close())

const REQUEST = 'a1'.repeat(32)
const RESPONSE = 'b2'.repeat(32)

async function prove(spki: (own: string) => string) {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  if (!('privateKey' in pair)) throw new Error('no key pair')
  const address = toHex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)))
  const text = `${REQUEST}:${RESPONSE}`
  const signature = await crypto.subtle.sign('Ed25519', pair.privateKey, utf8(text))
  provider = await startRecordingProvider((request, response) => {
    const known = request.url === '/v1/signature/chatcmpl-1?signing_algo=ed25519'
    const answer = { text, signature: toHex(new Uint8Array(signature)), signing_address: address }
    response.writeHead(known ? 200 : 404)
    response.end(JSON.stringify({ ...answer, signing_algo: 'ed25519' }))
  })
  const evidence: VerifiedEvidence = {
    verified: true,
    verification_mode: 'test',
    checks: [],
    attestation_strength: 'hardware',
    binding: { tls_spki_sha256: spki(provider.tls.spkiSha256) },
    verified_at: 0,
    expires_at: 4_000_000_000,
    evidence_digest: 'ee'.repeat(32),
    evidence_summary: {},
    evidence_raw: new Uint8Array(),
    claims: {},
  }
  const reach = { provider: 'nova', baseUrl: `${provider.origin}/v1`, apiKey: 'k', webPki: false }
  const proofs: ProvenProviders = {
    list: () => [],
    channel: () => ({ ...reach, evidence }),
    unattested: () => undefined,
    reverify: async () => undefined,
    distrust: () => {},
    hop: () => undefined,
  }
  const egress = createProviderEgress({
    proofs,
    connectMs: () => 1000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
  const message = {
    provider: 'nova',
    responseId: 'chatcmpl-1',
    upstreamModel: undefined,
    requestDigest: REQUEST,
    responseDigest: RESPONSE,
    key: { algorithm: 'ed25519', address } as const,
  }
  const proof = await proveMessage(message, { egress, waitMs: 300, pauseMs: 20 })
  egress.close()
  return proof
}

describe('the signature of a completion', () => {
  it('is fetched over a connection with the proven key', async () => {
    expect(await prove((own) => own)).toMatchObject({ status: 'verified', form: 'digests' })
    expect(provider.received()).toContain('authorization: Bearer k')
  })

  it('is not asked of a peer with another key', async () => {
    expect(await prove(() => 'ff'.repeat(32))).toMatchObject({ status: 'timeout' })
    expect(provider.received()).toBe('')
  })
})
