import { describe, expect, it } from 'vitest'
import { proveMessage } from '../../../../src/enclave/proofs/message-proof.ts'
import { toHex, utf8 } from '../../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../../src/protocol/digest.ts'
import { isAciReceiptOf, splitAciReceipt } from '../../../../src/verify/providers/aci/receipt.ts'
import { verifyMessageSignature } from '../../../../src/verify/providers/message-signature.ts'

/** The published vector (Dstack-TEE/private-ai-gateway, `spec/test-vectors.md`, section 4). */
const KEYSET = 'sha256:53a5cd44b30dcc51999754c719f2628a041f174ecbf9662a6f8e898a10cd9371'
const KEY = {
  algorithm: 'ed25519',
  address: '8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394',
  keyset: KEYSET,
} as const
const REQUEST = '94d809bf47380d8a2eab0eb6e126d4dda9364b0b4725cdf7ead52dd70b2aa87b'
const RESPONSE = 'dedfffe5b14d031b8e2c01996d021a15293cb7c63b56be7e4be9e89b6f0a5f61'
const RECEIPT = {
  // In another order than it is signed in: the canonical form decides.
  receipt_id: 'rcpt-0001',
  api_version: 'aci/1',
  chat_id: 'chatcmpl-123',
  endpoint: '/v1/chat/completions',
  event_log: [
    { type: 'request.received', body_hash: `sha256:${REQUEST}` },
    { type: 'request.forwarded', body_hash: `sha256:${REQUEST}` },
    {
      type: 'upstream.verified',
      model_id: 'demo-model',
      required: true,
      result: 'verified',
      session_id: '95ad1cb4dd25445808c2e9d116caf420b05703730b506395e8fc1ca6faeae28f',
    },
    { type: 'response.returned', body_hash: `sha256:${RESPONSE}` },
  ],
  key_id: 'receipt-1',
  method: 'POST',
  model: 'demo-model',
  served_at: 1_750_000_000,
  workload_keyset_digest: KEYSET,
  signature:
    'd5b005e093bde3b577faf270b7184b09e169cacb0ecb206b103bd2581f997db03da616175454b063323a23ac1dc68f1ce506c2a6eba8aa0561d5e724f0b80c03',
}
const EXCHANGE = { keyset: KEYSET, requestDigest: REQUEST, responseDigest: RESPONSE }

const [received, , , returned] = RECEIPT.event_log

function proofOf(receipt: unknown, change: object = {}) {
  const asked: string[] = []
  const get = async (_provider: string, { path }: { readonly path: string }) => {
    asked.push(path)
    return { status: 200, body: utf8(JSON.stringify(receipt)) }
  }
  const message = {
    provider: 'nova',
    responseId: 'chatcmpl-123',
    upstreamModel: 'demo-model',
    requestDigest: REQUEST,
    responseDigest: RESPONSE,
    key: KEY,
    ...change,
  }
  return { asked, proof: proveMessage(message, { egress: { get }, waitMs: 200, pauseMs: 5 }) }
}

describe("a private gateway's receipt", () => {
  it('has the signed text of the published vector, and its signature verifies', async () => {
    const split = splitAciReceipt(RECEIPT)
    expect(await sha256Hex(split?.text ?? '')).toBe(
      '1bd328e6880a5a12b3915af95ea32111310e04ab9e21ac3d71ce268e33b965c9',
    )
    expect(await verifyMessageSignature(split?.text ?? '', RECEIPT.signature, KEY)).toBe(true)
    expect(isAciReceiptOf(split?.text ?? '', EXCHANGE)).toBe(true)
  })

  it('is the proof of an answer, and is kept whole', async () => {
    const { asked, proof } = proofOf(RECEIPT)
    expect(await proof).toMatchObject({
      status: 'verified',
      form: 'aci_receipt',
      text: splitAciReceipt(RECEIPT)?.text,
      signature: RECEIPT.signature,
    })
    expect(asked).toEqual(['/aci/receipts/chatcmpl-123'])
  })

  it.each<[string, unknown, object, string]>([
    ['of another request', RECEIPT, { requestDigest: 'ab'.repeat(32) }, 'mismatch'],
    ['of another answer', RECEIPT, { responseDigest: 'ab'.repeat(32) }, 'mismatch'],
    [
      'under another keyset',
      RECEIPT,
      { key: { ...KEY, keyset: `sha256:${'ab'.repeat(32)}` } },
      'mismatch',
    ],
    ['by another key', RECEIPT, { key: { ...KEY, address: 'ab'.repeat(32) } }, 'invalid'],
    ['with another model written in', { ...RECEIPT, model: 'better-model' }, {}, 'invalid'],
    ['without a signature', { ...RECEIPT, signature: undefined }, {}, 'malformed'],
    ['as long as a book', { ...RECEIPT, extra: 'x'.repeat(8_192) }, {}, 'malformed'],
    ['that is no receipt', [], {}, 'malformed'],
    [
      'that lists two answers',
      { ...RECEIPT, event_log: [received, returned, { ...returned, body_hash: 'x' }] },
      {},
      'mismatch',
    ],
    ['that begins otherwise', { ...RECEIPT, event_log: [returned, received] }, {}, 'mismatch'],
    ['that lists no answer', { ...RECEIPT, event_log: [received] }, {}, 'mismatch'],
  ])('is no proof %s', async (_what, receipt, change, status) => {
    expect(await proofOf(receipt, change).proof).toMatchObject({ status })
  })

  it('is none of a provider that signs in another form', async () => {
    const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    if (!('privateKey' in pair)) throw new Error('no key pair')
    const address = toHex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)))
    const { proof } = proofOf(RECEIPT, { key: { algorithm: 'ed25519', address } })
    expect(await proof).toMatchObject({ status: 'malformed' })
  })
})
