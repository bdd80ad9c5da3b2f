import { beforeAll, describe, expect, test } from 'vitest'
import { proveMessage } from '../../../src/enclave/proofs/message-proof.ts'
import { makeReceiptKey, type ReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import { createReceiptSigner } from '../../../src/enclave/sign/receipt-signer.ts'
import { describeRouterHop } from '../../../src/enclave/sign/router-block.ts'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { keptEnvelope } from '../envelope/cached-envelope.ts'

// A gateway's receipt with a lone surrogate in any member: valid JSON, plain ASCII.
const RECEIPT = utf8(String.raw`{"api_version":"aci/1","note":"\ud800","signature":"00"}`)
const egress = { get: async () => ({ status: 200, body: RECEIPT }) }
const times = { waitMs: 200, pauseMs: 5 }
const key = {
  algorithm: 'ed25519',
  address: 'aa'.repeat(32),
  keyset: `sha256:${'0'.repeat(64)}`,
} as const
const digests = { requestDigest: 'a1'.repeat(32), responseDigest: 'a2'.repeat(32) }

let receiptKey: ReceiptKey
beforeAll(async () => {
  receiptKey = await makeReceiptKey()
})

describe("a private gateway's receipt that cannot be put into canonical JSON", () => {
  test('is malformed: proveMessage never rejects', async () => {
    const message = { provider: 'phala', responseId: 'id', upstreamModel: 'm', key, ...digests }
    await expect(proveMessage(message, { egress, ...times })).resolves.toMatchObject({
      status: 'malformed',
    })
  })

  test('does not cost the receipts of other customers and providers that are signed in the same batch', async () => {
    const config = 'cf'.repeat(32)
    const router = describeRouterHop({
      envelope: keptEnvelope(),
      trustBundleJws: 'd.e.f',
      platform: 'simulated',
    })
    const sign = createReceiptSigner({
      key: receiptKey,
      proofs: {
        hop: (provider) => (provider === 'phala' ? { ...UNATTESTED, messageKey: key } : UNATTESTED),
      },
      routerHop: () => router,
      proveMessage: (message) => proveMessage(message, { egress, ...times }),
    })
    const claims = {
      iat: 1_700_000_100,
      endpoint: '/v1/chat/completions',
      requested_route: 'glm-5',
      prompt_tokens: 3,
      completion_tokens: 5,
      request_digest: digests.requestDigest,
      response_digest: digests.responseDigest,
      digest_version: 1,
      failover: false,
      client_request_digest: 'a3'.repeat(32),
      client_response_digest: 'a4'.repeat(32),
    }
    const ask = (provider: string) => ({
      claims: { jti: crypto.randomUUID(), routed_model: `${provider}/glm-5`, ...claims },
      provider,
      provider_response_id: 'id',
      upstream_model: 'm',
      configuration_sha256: config,
      evidence_sha256: null,
    })
    await expect(
      sign({ receipts: [ask('honest'), ask('phala'), ask('honest')] }),
    ).resolves.toHaveProperty('kid')
  })
})
