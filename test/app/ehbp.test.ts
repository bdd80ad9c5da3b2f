import { request as httpRequest } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { Transport } from 'ehbp'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { readEnvelope } from '../../src/verify/envelope-hardware.ts'
import { wav } from '../support/audio-samples.ts'
import { senderTo, type Sender } from '../support/ehbp-sender.ts'
import { gather } from '../support/gather.ts'
import { standinOf } from '../support/standin.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** Encrypted bodies against a real router: the stock client of the protocol, and what an attacker may try. */

const ASK = { model: 'glm-5', messages: [{ role: 'user' as const, content: 'Hello!' }] }

let stack: Stack
let stock: Transport

beforeAll(async () => {
  stack = await startStack()
  stock = await Transport.create(stack.local.base_url)
})
afterAll(() => stack.stop())

async function keyConfig(): Promise<Uint8Array> {
  return (await fetch(`${stack.local.base_url}/.well-known/hpke-keys`)).bytes()
}

const sender = async (): Promise<Sender> => senderTo(await keyConfig())

const headersOf = (enc: string, more: Record<string, string> = {}) => ({
  'content-type': 'application/json',
  'ehbp-encapsulated-key': enc,
  ...more,
})

function post(enc: string, body: BodyInit, more: Record<string, string> = {}): Promise<Response> {
  return stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: headersOf(enc, more),
    body,
  })
}

test('the key is served as the protocol has it, and a report binds it', async () => {
  const served = await fetch(`${stack.local.base_url}/.well-known/hpke-keys`)
  expect(served.headers.get('content-type')).toBe('application/ohttp-keys')
  const nonce = '1f'.repeat(32)
  const evidence = await fetch(`${stack.local.base_url}/attestation?nonce=${nonce}`)
  expect(readEnvelope(await evidence.text()).report_data_binding).toMatchObject({
    label: 'cmr/report-data/v2',
    hpke_key_config_sha256: await sha256Hex(await served.bytes()),
    nonce,
  })
})

describe('the stock client of EHBP', () => {
  const stockFetch: typeof fetch = (input, init) =>
    stock.request(input instanceof URL ? input.href : input, init)
  const openai = (apiKey = stack.local.api_key) =>
    new OpenAI({
      baseURL: `${stack.local.base_url}/v1`,
      apiKey,
      fetch: stockFetch,
      maxRetries: 0,
    })

  test('sends prompts that are read piece by piece', async () => {
    const content = 'word '.repeat(400_000)
    const answer = await openai().chat.completions.create({
      ...ASK,
      messages: [{ role: 'user', content }],
      max_completion_tokens: 5,
    })
    expect(answer.choices[0]?.finish_reason).toMatch(/^(stop|length)$/)
  })

  test('gets chat completions, whole and streamed', async () => {
    const whole = await openai().chat.completions.create(ASK)
    expect(whole.choices[0]?.message.content).toContain('You said: Hello!')
    const chunks = await gather(await openai().chat.completions.create({ ...ASK, stream: true }))
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    expect(text).toContain('You said: Hello!')
  })

  test('gets responses, whole and streamed', async () => {
    const ask = { model: 'glm-5', input: 'Hello!' }
    expect((await openai().responses.create(ask)).output_text).toContain('You said: Hello!')
    const events = await gather(await openai().responses.create({ ...ask, stream: true }))
    expect(events.at(-1)).toMatchObject({ type: 'response.completed' })
  })

  test('gets messages, whole and streamed', async () => {
    const { base_url: baseURL, api_key: apiKey } = stack.local
    const anthropic = new Anthropic({ baseURL, apiKey, fetch: stockFetch, maxRetries: 0 })
    const ask = { ...ASK, max_tokens: 200 }
    expect(JSON.stringify(await anthropic.messages.create(ask))).toContain('You said: Hello!')
    const streamed = await anthropic.messages.stream(ask).finalMessage()
    expect(JSON.stringify(streamed.content)).toContain('You said: Hello!')
  })

  test('gets embeddings and a transcription', async () => {
    const ask = { model: 'bge-m3', input: 'Hello!' }
    expect((await openai().embeddings.create(ask)).data[0]?.embedding.length).toBeGreaterThan(0)
    const file = await toFile(wav(2).bytes, 'speech.wav')
    const heard = await openai().audio.transcriptions.create({ model: 'whisper-large-v3', file })
    expect(heard.text).not.toBe('')
  })

  test.each([
    ['of the request', 404, 'model_not_found', { ...ASK, model: 'no-such-model' }, undefined],
    ['of the key', 401, 'unauthorized', ASK, 'cmr_nobody_none_x'],
  ])('reads errors %s, which are encrypted too', async (_what, status, code, ask, apiKey) => {
    const failed = openai(apiKey).chat.completions.create(ask)
    await expect(failed).rejects.toMatchObject({ status, code })
  })
})

describe('an encrypted request', () => {
  const BODY = JSON.stringify({ ...ASK, stream: true })

  test('is answered in frames, the last of them empty, and no party in between can read it', async () => {
    const client = await sender()
    const answer = await post(client.enc, await client.seal(BODY))
    expect(answer.status).toBe(200)
    expect(await answer.clone().text()).not.toMatch(/Hello|data:/)
    const frames = await client.open(answer)
    expect(frames.at(-1)).toBe('')
    expect(frames.join('')).toMatch(/^data: .*data: \[DONE\]\n\n$/s)
  })

  test('is accepted once, also by another process of the worker', async () => {
    const client = await sender()
    const sealed = await client.seal(BODY)
    await (await post(client.enc, sealed)).bytes()
    const replayed = async () => {
      const answer = await post(client.enc, sealed)
      expect(answer.headers.has('ehbp-response-nonce')).toBe(false)
      return [answer.status, await answer.json()]
    }
    const refusal = {
      error: { code: 'invalid_encryption', message: 'This encrypted request was sent before.' },
    }
    expect(await replayed()).toMatchObject([400, refusal])
    const { worker } = stack.local.pids
    process.kill(worker, 'SIGKILL')
    await until(async () => {
      const up = await stack.fetch('/healthz').catch(() => undefined)
      return up?.status === 200 && stack.localNow().pids.worker !== worker
    })
    expect(await replayed()).toMatchObject([400, refusal])
  })

  test('gets its answer again under an Idempotency-Key, and that of no other request', async () => {
    const send = async (body: string) => {
      const client = await sender()
      const headers = { 'idempotency-key': 'encrypted-order' }
      const answer = await post(client.enc, await client.seal(body), headers)
      const { status, headers: given } = answer
      return [status, given.get('idempotency-replayed'), (await client.open(answer)).join('')]
    }
    const [status, replayed, text] = await send(BODY)
    expect([status, replayed, text]).toEqual([200, null, expect.stringContaining('[DONE]')])
    expect(await send(BODY)).toEqual([200, 'true', text])
    const other = JSON.stringify({ ...ASK, stream: true, max_tokens: 5 })
    const reused = expect.stringContaining('"code":"idempotency_key_reused"')
    expect(await send(other)).toEqual([422, null, reused])
  })

  test('is not accepted twice by requests of one moment either', async () => {
    const client = await sender()
    const sealed = await client.seal(BODY)
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(client.enc, sealed)))
    await Promise.all(answers.map((answer) => answer.bytes()))
    const accepted = answers.filter(({ status }) => status === 200)
    expect([accepted.length, answers.filter(({ status }) => status === 400).length]).toEqual([1, 7])
  })

  test('that was changed, cut or sealed for another key reaches no provider', async () => {
    const wrongKey = (await keyConfig()).map((byte, at) => (at === 10 ? byte ^ 1 : byte))
    const other = await senderTo(wrongKey)
    const stale = await post(other.enc, await other.seal(BODY))
    expect([stale.status, stale.headers.get('content-type')]).toEqual([
      422,
      'application/problem+json',
    ])
    expect(await stale.json()).toMatchObject({ type: 'urn:ietf:params:ehbp:error:key-config' })
    const cut = await sender()
    const whole = await cut.seal(BODY)
    expect((await post(cut.enc, whole.slice(0, -1))).status).toBe(400)
    const between = await sender()
    const half = await between.seal(BODY.slice(0, 20))
    const refused = await post(between.enc, half)
    expect([refused.status, (await between.open(refused)).join('')]).toEqual([
      400,
      expect.stringContaining('invalid_request_error'),
    ])
  })

  test.each(['/v1/unseal', '/admin/customers'])('to %s is refused', async (path) => {
    const client = await sender()
    const answer = await stack.fetch(path === '/v1/unseal' ? '/.well-known/unseal' : path, {
      method: 'POST',
      headers: headersOf(client.enc),
      body: await client.seal('{}'),
    })
    expect(answer.status).toBeGreaterThanOrEqual(400)
  })

  test('whose declared length lies, or whose upload breaks off, is dropped and held nowhere', async () => {
    const client = await sender()
    const sealed = await client.seal(BODY)
    const { hostname, port } = new URL(stack.local.base_url)
    const upload = httpRequest({
      host: hostname,
      port,
      method: 'POST',
      path: '/v1/chat/completions',
      headers: {
        authorization: `Bearer ${stack.local.api_key}`,
        ...headersOf(client.enc),
        'content-length': sealed.length + 100,
      },
    })
    const closed = new Promise((resolve) => upload.on('error', () => {}).on('close', resolve))
    await new Promise((resolve) => upload.write(sealed, resolve))
    upload.destroy()
    await closed
    // Its encapsulated key was not used up: the body never came whole.
    const again = await post(client.enc, sealed)
    expect(again.status).toBe(200)
    await again.bytes()
  })

  test('is answered frame by frame, and a client that leaves is noticed', async () => {
    const delta = { choices: [{ index: 0, delta: { content: 'the first word' } }] }
    const frames = [`data: ${JSON.stringify(delta)}\n\n`]
    await standinOf(stack).script({ frames, end: 'hang' })
    const usage = async () => {
      const rows: { data: unknown[] } = await (await stack.fetch('/v1/usage')).json()
      return rows.data.length
    }
    const before = await usage()
    const client = await sender()
    const answer = await post(client.enc, await client.seal(BODY))
    const reader = answer.body?.getReader()
    const nonce = answer.headers.get('ehbp-response-nonce') ?? ''
    const { value } = (await reader?.read()) ?? {}
    const first = await client.openFrames(value ?? new Uint8Array(), nonce)
    expect(first.join('')).toContain('the first word')
    await reader?.cancel()
    // What was delivered of a cut stream is billed once the router has seen the client leave.
    await until(async () => (await usage()) === before + 1)
    expect(await usage()).toBe(before + 1)
  })
})
