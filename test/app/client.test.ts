import { readFileSync } from 'node:fs'
import OpenAI, { APIConnectionError, toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createClient,
  memoryState,
  type Client,
  type ClientOptions,
  type ReceiptOutcome,
} from '../../src/client/index.ts'
import { RUNTIME_DEPS } from '../../src/client/runtime-deps.ts'
import { wav } from '../support/audio-samples.ts'
import { gather } from '../support/gather.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The client library against a real router over real TLS. Other SDKs: sdk-matrix.test.ts. */

let stack: Stack
let client: Client
let baseURL: string
let apiKey: string
const outcomes: ReceiptOutcome[] = []

beforeAll(async () => {
  stack = await startStack()
  baseURL = `${stack.local.tls_base_url}/v1`
  apiKey = stack.local.api_key
  client = makeClient()
})
afterAll(async () => {
  await client.close()
  await stack.stop()
})
beforeEach(() => void (outcomes.length = 0))

function optionsFor(): ClientOptions {
  return {
    baseURL,
    rootKey: JSON.parse(readFileSync(stack.local.root_key, 'utf8')),
    policy: { allowSimulated: true },
    state: memoryState(),
    onReceipt: (outcome) => outcomes.push(outcome),
  }
}

function makeClient(more: Partial<ClientOptions> = {}): Client {
  return createClient({ ...optionsFor(), ...more })
}

const ASK = { model: 'glm-5', messages: [{ role: 'user' as const, content: 'Hello!' }] }

/** Every answer so far has a receipt that holds, over the bytes that this client sent and got. */
async function expectReceipts(count: number): Promise<void> {
  await client.receipts.settled()
  expect(outcomes.map(({ ok, failed }) => [ok, failed])).toEqual(
    Array.from({ length: count }, () => [true, []]),
  )
  for (const { checks } of outcomes) {
    expect(checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'receipt_id',
        'client_request_digest',
        'client_response_digest',
        'receipt_key',
      ]),
    )
  }
}

describe.each(['tls', 'ehbp'] as const)('with the transport %s', (transport) => {
  let pinned: Client

  beforeAll(() => {
    pinned = client
    // A runtime's own TLS would refuse the self-signed certificate; what is encrypted needs none.
    if (transport === 'ehbp') baseURL = `${stack.local.base_url}/v1`
    client = makeClient({ transport })
  })
  afterAll(async () => {
    await client.close()
    client = pinned
    baseURL = `${stack.local.tls_base_url}/v1`
  })

  describe('the openai package', () => {
    const openai = () => new OpenAI({ baseURL, apiKey, fetch: client.fetch, maxRetries: 0 })

    test('gets whole and streamed answers, each with a receipt that holds', async () => {
      const whole = await openai().chat.completions.create(ASK)
      expect(whole.choices[0]?.message.content).toContain('You said: Hello!')
      const chunks = await gather(await openai().chat.completions.create({ ...ASK, stream: true }))
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toContain(
        'Hello!',
      )
      await expectReceipts(2)
    })

    test('uploads a file and gets its transcript', async () => {
      const file = await toFile(wav(2).bytes, 'speech.wav')
      const { text } = await openai().audio.transcriptions.create({
        model: 'whisper-large-v3',
        file,
      })
      expect(text).not.toBe('')
      await expectReceipts(1)
    })

    test("passes the router's own errors on as they are", async () => {
      const failed = openai().chat.completions.create({ ...ASK, model: 'no-such-model' })
      await expect(failed).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
      await expectReceipts(0)
    })

    test('reports a refused router as the cause of its connection error', async () => {
      const strict = makeClient({ transport, policy: {} })
      const sdk = new OpenAI({ baseURL, apiKey, fetch: strict.fetch, maxRetries: 0 })
      const failed = sdk.chat.completions.create(ASK)
      await expect(failed).rejects.toBeInstanceOf(APIConnectionError)
      await expect(failed).rejects.toMatchObject({
        cause: { code: 'attestation_refused', failed: ['trust_bundle_environment'] },
      })
      await strict.close()
    })
  })
})

describe('receipts', () => {
  const headers = () => ({ authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' })
  const post = (by: Client, body: object, more: Record<string, string> = {}) =>
    by.fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { ...headers(), ...more },
      body: JSON.stringify(body),
    })

  test('are verified on demand, once the answer is read', async () => {
    const answer = await post(client, ASK)
    await answer.text()
    const outcome = await client.receipts.of(answer)
    expect(outcome).toMatchObject({ ok: true, simulated: true, path: '/v1/chat/completions' })
    expect(outcome?.receipt).toMatch(/^eyJ/)
    expect(outcome?.claims?.jti).toBe(outcome?.id)
  })

  test('are undefined for answers that have none', async () => {
    const models = await client.fetch(`${baseURL}/models`, { headers: headers() })
    expect(models.status).toBe(200)
    expect(await client.receipts.of(models)).toBeUndefined()
  })

  test.each([false, true])(
    'where required, end an answer that has none with an error (stream: %s)',
    async (stream) => {
      const strict = makeClient({ requireReceipt: true })
      expect(await (await post(strict, { ...ASK, stream })).text()).toContain('receipt_id')
      const without = await post(strict, { ...ASK, stream }, { 'x-service-receipt': 'false' })
      await expect(without.text()).rejects.toMatchObject({
        code: 'receipt_refused',
        failed: ['receipt_missing'],
      })
      await strict.close()
    },
  )
})

describe('what a request requires of its provider', () => {
  const ask = async (by: Client, url: string, more: object, headers: Record<string, string>) => {
    const answer = await by.fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify({ ...ASK, ...more }),
    })
    await answer.text()
    return by.receipts.of(answer)
  }

  test.each([
    [{ attestation: { providers: ['standin'] } }, {}],
    [{}, { 'x-service-require': 'providers=standin,nova' }],
  ])('stands in the receipt of an honest router: %o %o', async (more, headers) => {
    const outcome = await ask(client, baseURL, more, headers)
    expect(outcome).toMatchObject({ ok: true, failed: [] })
    expect(outcome?.checks.map(({ name }) => name)).toContain('constraints')
  })

  test('is missed where it was taken out on the way', async () => {
    const stripping: typeof fetch = (input, init = {}) => {
      const headers = new Headers(init.headers)
      headers.delete('x-service-require')
      return fetch(input, { ...init, headers })
    }
    const url = `${stack.local.base_url}/v1`
    const options = { ...optionsFor(), baseURL: url, transport: 'ehbp' } as const
    const robbed = createClient(options, { ...RUNTIME_DEPS, fetch: stripping })
    const outcome = await ask(robbed, url, {}, { 'x-service-require': 'providers=standin' })
    expect(outcome).toMatchObject({ ok: false, failed: ['constraints'] })
    expect(outcome?.checks.find(({ ok }) => !ok)?.detail).toBe(
      'the receipt says that nothing was required',
    )
    await robbed.close()
  })
})

test('a verification asks for fresh evidence, while requests go on', async () => {
  const [before] = client.proofs()
  const running = client.fetch(`${baseURL}/models`, {
    headers: { authorization: `Bearer ${apiKey}` },
  })
  const [after] = await client.verify()
  expect((await running).status).toBe(200)
  expect(after?.tlsSpkiSha256).toBe(before?.tlsSpkiSha256)
  expect(after?.envelope.report_data_binding?.nonce).not.toBe(
    before?.envelope.report_data_binding?.nonce,
  )
})
