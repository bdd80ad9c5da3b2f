import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  answering,
  completion,
  content,
  DONE,
  EVENT_STREAM,
  FIRST,
  JSON_TYPE,
  ROLE,
  sound,
  status,
  STOP,
  usageFrame,
} from '../faults/answers.ts'
import { openWorld, type Customer, type World, type WorldRoute } from '../faults/world.ts'
import { errorOf } from '../support/answers.ts'
import type { Script, Wire } from '../support/fault-provider.ts'
import { RawClient, rawRequest } from '../support/raw-client.ts'
import { temporaryDirectory, until } from '../support/stack.ts'

/** `Idempotency-Key` on the endpoints, as its callers meet it. */

/** Answers that wait for the test, by model. */
const waiting = new Map<string, Wire>()
const slow: Script = ({ wire, stream, model }) => {
  wire.head(200, stream ? EVENT_STREAM : JSON_TYPE)
  if (stream) wire.send(ROLE + content('Hello '))
  waiting.set(model, wire)
}

const goOn = (model: string, rest: string) => {
  waiting.get(model)?.send(rest)
  waiting.get(model)?.end()
}

const failingOnce: Script = (call) => (call.number === 1 ? status(500)(call) : sound(call))

const vectors = JSON.stringify({
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5, -1] }],
  usage: { prompt_tokens: 3, total_tokens: 3 },
})

/** Stands in the answer, so that it can be looked for where it must not be. */
const MARKER = 'XANSWERMARKERX'

const ROUTES: readonly WorldRoute[] = [
  { model: 'sound', at: 'alpha', script: sound },
  { model: 'slow', at: 'alpha', script: slow },
  { model: 'left', at: 'alpha', script: slow },
  { model: 'failing', at: 'alpha', script: failingOnce },
  {
    model: 'cut',
    at: 'alpha',
    script: ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + content('Hello '))
      wire.end()
    },
  },
  {
    model: 'marked',
    at: 'alpha',
    script: answering('', JSON.stringify(completion({ content: MARKER.repeat(40) }))),
  },
  {
    model: 'large',
    at: 'alpha',
    script: answering(ROLE + content('x'.repeat(60_000)).repeat(150) + STOP + DONE, ''),
  },
  { model: 'vectors', at: 'alpha', script: answering('', vectors), more: { type: 'embedding' } },
]

let world: World
const stateDir = temporaryDirectory()

beforeAll(async () => {
  world = await openWorld(ROUTES, {
    stateDir,
    timeouts: { idle_ms: 20_000, sync_attempt_ms: 20_000 },
  })
}, 120_000)
afterAll(() => world.close())

interface Sent {
  readonly status: number
  readonly body: string
  readonly headers: Headers
}

async function send(
  { key }: Pick<Customer, 'key'>,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Sent> {
  const answer = await world.stack.fetch(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: await answer.text(), headers: answer.headers }
}

const messages = [{ role: 'user', content: 'Hello!' }]
const CHAT = '/v1/chat/completions'

const rowsSchema = z.object({ total_count: z.int() })

async function billed({ key }: Customer): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await world.stack.fetch('/v1/usage', { headers })
  return rowsSchema.parse(await answer.json()).total_count
}

const codeOf = ({ body }: Sent) => errorOf(new Response(body)).then(({ code }) => code)

describe('a repeat gets the answer of the first request, and is not billed', () => {
  const MESSAGE = { max_tokens: 100, messages }
  test.each([
    ['a chat completion', CHAT, { model: 'sound', messages }],
    ['a streamed chat completion', CHAT, { model: 'sound', messages, stream: true }],
    ['a response', '/v1/responses', { model: 'sound', input: 'Hello!' }],
    ['a streamed response', '/v1/responses', { model: 'sound', input: 'Hello!', stream: true }],
    ['a message', '/v1/messages', { model: 'sound', ...MESSAGE }],
    ['a streamed message', '/v1/messages', { model: 'sound', ...MESSAGE, stream: true }],
    ['embeddings', '/v1/embeddings', { model: 'vectors', input: 'Hello!' }],
    ['a stream that broke off', CHAT, { model: 'cut', messages, stream: true }],
  ])('%s', async (_what, path, body) => {
    const customer = await world.newCustomer()
    const asked = world.provider.calls(body.model).length
    const headers = { 'idempotency-key': '"the first order"', 'x-service-dropped': '1' }
    const first = await send(customer, path, body, headers)
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([200, null])
    const repeat = await send(customer, path, body, headers)
    expect(repeat.status).toBe(200)
    expect(repeat.body).toBe(first.body)
    expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    for (const name of ['content-type', 'cache-control', 'x-receipt-id']) {
      expect(repeat.headers.get(name)).toBe(first.headers.get(name))
    }
    expect(repeat.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(await billed(customer)).toBe(1)
    expect(world.provider.calls(body.model)).toHaveLength(asked + 1)
    const other = await send(customer, path, body, { ...headers, 'idempotency-key': '"another"' })
    expect(other.headers.get('idempotency-replayed')).toBeNull()
    expect(await billed(customer)).toBe(2)
  })
})

describe('a repeat while the first is being carried out', () => {
  test('gets Retry-After, and then the answer', async () => {
    const customer = await world.newCustomer()
    const headers = { 'idempotency-key': 'at-work' }
    const body = { model: 'slow', messages }
    const first = send(customer, CHAT, body, headers)
    await until(() => waiting.has('slow'))
    const early = await send(customer, CHAT, body, headers)
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '2'])
    expect(await codeOf(early)).toBe('idempotency_in_progress')
    goOn('slow', JSON.stringify(completion()))
    const { body: text } = await first
    expect(text).toContain(FIRST)
    const late = await send(customer, CHAT, body, headers)
    expect([late.body, late.headers.get('idempotency-replayed')]).toEqual([text, 'true'])
    expect(await billed(customer)).toBe(1)
  })

  test('of a client that hung up finds the whole answer and its receipt, billed once', async () => {
    const customer = await world.newCustomer()
    const body = { model: 'left', messages, stream: true }
    const text = JSON.stringify(body)
    const client = await RawClient.connect(world.stack.local.base_url)
    const head = {
      authorization: `Bearer ${customer.key}`,
      'content-type': 'application/json',
      'content-length': text.length,
      'idempotency-key': 'hung-up',
    }
    client.send(rawRequest('POST', CHAT, head, text))
    expect(await client.hears('Hello ')).toBe(true)
    client.reset()
    const repeat = () => send(customer, CHAT, body, { 'idempotency-key': 'hung-up' })
    expect((await repeat()).status).toBe(409)
    goOn('left', content('from the first.') + STOP + usageFrame() + DONE)
    let answer = await repeat()
    await until(async () => (answer = await repeat()).status === 200)
    expect(answer.body).toContain('from the first.')
    expect(answer.body.trimEnd().endsWith('data: [DONE]')).toBe(true)
    const receipt = await world.stack.fetch(`/v1/receipts/${answer.headers.get('x-receipt-id')}`, {
      headers: { authorization: `Bearer ${customer.key}` },
    })
    expect(receipt.status).toBe(200)
    expect(await billed(customer)).toBe(1)
    expect(world.provider.calls('left')).toHaveLength(1)
  })
})

describe('another request under a key that was used', () => {
  test('is refused: another body, path or service header, another API key of the customer', async () => {
    const customer = await world.newCustomer()
    const headers = { 'idempotency-key': 'used' }
    const body = { model: 'sound', messages }
    expect((await send(customer, CHAT, body, headers)).status).toBe(200)
    const path = `/admin/customers/${customer.id}/keys`
    const made = await world.admin.call('POST', path, { name: 'second' })
    const second = z.object({ key: z.string() }).parse(made)
    const others = [
      await send(customer, CHAT, { ...body, seed: 1 }, headers),
      await send(customer, '/v1/responses', { model: 'sound', input: 'Hello!' }, headers),
      await send(customer, CHAT, body, { ...headers, 'x-service-receipt': 'false' }),
      await send(second, CHAT, body, headers),
    ]
    for (const other of others) {
      expect([other.status, await codeOf(other)]).toEqual([422, 'idempotency_key_reused'])
    }
    const timed = { ...headers, 'x-service-timeout-seconds': '30' }
    expect((await send(customer, CHAT, body, timed)).headers.get('idempotency-replayed')).toBe(
      'true',
    )
    expect(await billed(customer)).toBe(1)
  })

  test('gets the error in the format of Messages there', async () => {
    const customer = await world.newCustomer()
    const body = { model: 'sound', max_tokens: 100, messages }
    const headers = { 'idempotency-key': 'used' }
    await send(customer, '/v1/messages', body, headers)
    const other = await send(customer, '/v1/messages', { ...body, max_tokens: 101 }, headers)
    expect(other.status).toBe(422)
    expect(JSON.parse(other.body)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error' },
    })
  })

  test('is a separate request for another customer', async () => {
    const [one, two] = [await world.newCustomer(), await world.newCustomer()]
    const body = { model: 'sound', messages }
    for (const customer of [one, two]) {
      const answer = await send(customer, CHAT, body, { 'idempotency-key': 'same' })
      expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([200, null])
    }
    expect([await billed(one), await billed(two)]).toEqual([1, 1])
  })
})

test('a request that cost nothing is carried out again', async () => {
  const customer = await world.newCustomer()
  const headers = { 'idempotency-key': 'unlucky' }
  const body = { model: 'failing', messages }
  expect((await send(customer, CHAT, body, headers)).status).toBe(502)
  const again = await send(customer, CHAT, body, headers)
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, null])
  expect((await send(customer, CHAT, body, headers)).headers.get('idempotency-replayed')).toBe(
    'true',
  )
  expect(await billed(customer)).toBe(1)
})

test('an answer that is too large is not kept, and not billed again', async () => {
  const customer = await world.newCustomer()
  const headers = { 'idempotency-key': 'large' }
  const body = { model: 'large', messages, stream: true }
  const first = await send(customer, CHAT, body, headers)
  expect(first.body.length).toBeGreaterThan(8 * 1024 * 1024)
  const repeat = await send(customer, CHAT, body, headers)
  expect([repeat.status, await codeOf(repeat)]).toEqual([410, 'answer_not_kept'])
  expect(repeat.body).toContain(first.headers.get('x-receipt-id'))
  expect(await billed(customer)).toBe(1)
})

test('a malformed key is refused before anything is done', async () => {
  const customer = await world.newCustomer()
  const refused = await send(
    customer,
    CHAT,
    { model: 'sound', messages },
    { 'idempotency-key': '"a' },
  )
  expect([refused.status, await codeOf(refused)]).toEqual([400, 'invalid_parameter'])
  expect(await billed(customer)).toBe(0)
})

test('a deleted key gets no answer that was kept for it', async () => {
  const customer = await world.newCustomer()
  const headers = { 'idempotency-key': 'gone' }
  const body = { model: 'sound', messages }
  await send(customer, CHAT, body, headers)
  const prefix = customer.key.split('_').slice(0, 3).join('_')
  await world.admin.call('DELETE', `/admin/customers/${customer.id}/keys/${prefix}`)
  expect((await send(customer, CHAT, body, headers)).status).toBe(401)
})

test('nothing of a kept answer, or of the key it is kept under, can be read in the ledger’s files', async () => {
  const customer = await world.newCustomer()
  const headers = { 'idempotency-key': 'XKEYMARKERX' }
  const body = { model: 'marked', messages }
  const first = await send(customer, CHAT, body, headers)
  expect(first.body).toContain(MARKER)
  expect((await send(customer, CHAT, body, headers)).body).toBe(first.body)
  const files = readdirSync(stateDir, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  expect(files.some((text) => text.includes(customer.id))).toBe(true)
  expect(files.some((text) => text.includes(MARKER) || text.includes('XKEYMARKERX'))).toBe(false)
})
