import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { createRemoteJWKSet, compactVerify, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ReceiptClaims } from '../../src/protocol/receipt.ts'
import { completionIn, completionOf, usageOf } from '../support/answers.ts'
import { streamOf } from '../support/provider-frames.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack()
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

const ASK = { model: 'glm-5', messages: [{ role: 'user', content: 'Hello, receipt!' }] }

function complete(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function verifiedClaims(receiptId = 'no receipt'): Promise<ReceiptClaims> {
  const answer = await stack.fetch(`/v1/receipts/${receiptId}`)
  expect(answer.status).toBe(200)
  const { id, receipt }: { id: string; receipt: string } = await answer.json()
  expect(id).toBe(receiptId)
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', stack.local.base_url))
  const { payload } = await compactVerify(receipt, keys, { algorithms: ['ES256'] })
  const claims: ReceiptClaims = JSON.parse(new TextDecoder().decode(payload))
  expect(claims.receipt_signature.kid).toBe(decodeProtectedHeader(receipt).kid)
  return claims
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

describe('the receipt of a completion', () => {
  test.each([true, false])(
    'says what its digest is over where an attested provider compresses unasked (stream: %s)',
    async (stream) => {
      const whole = { choices: [{ message: { content: 'zipped' }, finish_reason: 'stop' }] }
      const sent = stream ? streamOf([{ content: 'zipped' }]).join('') : JSON.stringify(whole)
      const type = stream ? 'text/event-stream' : 'application/json'
      await standin.script({
        provider: 'standin',
        headers: { 'content-type': type, 'content-encoding': 'gzip' },
        frames: [gzipSync(sent).toString('base64')],
        encoding: 'base64',
      })
      const answer = await complete({ ...ASK, model: 'standin/glm-5', stream })
      expect(await answer.text()).toContain('zipped')
      const claims = await verifiedClaims(answer.headers.get('x-receipt-id') ?? '')
      expect(claims).toMatchObject({
        response_digest: digest(sent),
        response_digest_over: 'decoded',
        inference_attestation: { verified: true, verification_mode: 'snp-envelope' },
      })
    },
  )

  test('says where the trust bundle is, in full, as the evidence does', async () => {
    const { service } = await completionOf(await complete(ASK))
    const claims = await verifiedClaims(service.receipt_id)
    const { trust_bundle_url: address, trust_bundle_jws: jws } = claims.router_attestation
    expect(address).toBe(`${stack.local.base_url}/.well-known/trust.json`)
    const { trust_bundle_jws: served } = await (await fetch(address ?? '')).json()
    expect(served).toBe(jws)
    const envelope = await (await stack.fetch('/attestation')).json()
    expect(envelope.trust_bundle_url).toBe(address)
  })

  test('binds the exact bytes the provider received and sent', async () => {
    const sent = JSON.stringify(ASK)
    const answer = await complete(ASK)
    const received = await answer.text()
    const { service, usage } = completionIn(received)
    const claims = await verifiedClaims(service.receipt_id)
    const [exchange] = await standin.exchanges()
    expect(claims).toMatchObject({
      jti: service.receipt_id,
      requested_route: 'glm-5',
      routed_model: 'standin/glm-5',
      prompt_tokens: usage?.prompt_tokens,
      completion_tokens: usage?.completion_tokens,
      request_digest: exchange?.request.sha256,
      response_digest: exchange?.response.sha256,
      digest_version: 1,
      failover: false,
      client_request_digest: digest(sent),
      client_response_digest: digest(received),
    })
    expect(claims.inference_attestation).toMatchObject({
      verified: true,
      attestation_strength: 'simulated',
    })
    expect(claims.router_attestation.attestation_strength).toBe('simulated')
  })

  test('of a stream is readable as soon as [DONE] is', async () => {
    const answer = await complete({ ...ASK, stream: true })
    const text = await answer.text()
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    const events = text.split('\n\n').filter((event) => event.startsWith('data: '))
    const last = completionIn(events.at(-2)?.slice('data: '.length) ?? '')
    const claims = await verifiedClaims(last.service.receipt_id)
    const [exchange] = await standin.exchanges()
    expect(claims.request_digest).toBe(exchange?.request.sha256)
    expect(claims.response_digest).toBe(exchange?.response.sha256)
    expect(claims.client_response_digest).toBe(
      digest(text.slice(0, text.indexOf(events.at(-2) ?? ''))),
    )
  })

  test('covers the exact bytes of each of many streams that are relayed at once', async () => {
    const sent = streamOf(Array.from({ length: 40 }, (_, index) => ({ content: ` ${index}` })))
    const streams = 48
    await standin.script({
      provider: 'standin-two',
      times: streams,
      frames: sent,
      frame_delay_ms: 5,
    })
    const ask = { ...ASK, model: 'standin-two/glm-5', stream: true }
    const texts = await Promise.all(
      Array.from({ length: streams }, async () => (await complete(ask)).text()),
    )
    for (const text of texts) {
      const events = text.split('\n\n').filter((event) => event.startsWith('data: '))
      const last = events.at(-2) ?? ''
      const { service } = completionIn(last.slice('data: '.length))
      const claims = await verifiedClaims(service.receipt_id)
      expect(claims.response_digest).toBe(digest(sent.join('')))
      expect(claims.client_response_digest).toBe(digest(text.slice(0, text.indexOf(last))))
      const contents = [...text.matchAll(/"content":" (\d+)"/g)].map(([, index]) => Number(index))
      expect(contents).toEqual(Array.from({ length: 40 }, (_, index) => index))
    }
  })

  test('is not made when the caller opts out', async () => {
    const answer = await complete(ASK, { 'x-service-receipt': 'false' })
    const { service } = await completionOf(answer)
    expect(service).not.toHaveProperty('receipt_id')
    expect(service).toMatchObject({ requested_route: 'glm-5', failover: false })
    const { data } = await usageOf(await stack.fetch('/v1/usage?limit=1'))
    expect(data[0]?.receipt_id).toBeNull()
  })

  test('belongs to its customer alone', async () => {
    const { service } = await completionOf(await complete(ASK))
    const stranger = await otherCustomersKey()
    const answer = await stack.fetch(`/v1/receipts/${service.receipt_id}`, {
      headers: { authorization: `Bearer ${stranger}` },
    })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found' } })
  })

  test('comes with a usage row of the same request', async () => {
    const { service, usage } = await completionOf(await complete(ASK))
    const { data } = await usageOf(await stack.fetch('/v1/usage?limit=1'))
    expect(data[0]).toMatchObject({
      model: 'standin/glm-5',
      modality: 'chat',
      provider: 'standin',
      region: 'eu',
      billing_unit: 'token',
      audio_seconds: null,
      prompt_tokens: usage?.prompt_tokens,
      completion_tokens: usage?.completion_tokens,
      discount_applied_pct: 0,
      receipt_id: service.receipt_id,
      failover: false,
      key_name: 'local',
    })
    const cost = ((usage?.prompt_tokens ?? 0) * 0.6 + (usage?.completion_tokens ?? 0) * 2.2) / 1e6
    expect(data[0]?.cost_eur).toBeCloseTo(cost, 9)
  })
})

async function otherCustomersKey(): Promise<string> {
  const customer = await admin('/admin/customers', { name: 'stranger', billing: 'postpaid' })
  const key = await admin(`/admin/customers/${customer['id']}/keys`, { name: 'stranger' })
  return key['key'] ?? ''
}

async function admin(path: string, body: object): Promise<Record<string, string>> {
  const answer = await stack.fetch(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.local.admin_token}` },
    body: JSON.stringify(body),
  })
  return answer.json()
}
