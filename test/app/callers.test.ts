import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  completion,
  EVENT_STREAM,
  JSON_TYPE,
  PROVIDER_WORDS,
  ROLE,
  sound,
  status,
  STOP,
  TEXT,
  usageFrame,
} from '../faults/answers.ts'
import { ask } from '../faults/ask.ts'
import { openWorld, type Customer, type World, type WorldRoute } from '../faults/world.ts'
import { errorOf } from '../support/answers.ts'
import type { Script } from '../support/fault-provider.ts'

/** What callers meet who use the router as they would any other, each found by doing so. */

const STREAMED = ROLE + TEXT + STOP + usageFrame()
const WHOLE = JSON.stringify(completion())

/** An answer that is compressed although compression was not requested. */
const compressed =
  (coding: string, content = (stream: boolean) => (stream ? STREAMED : WHOLE)): Script =>
  ({ wire, stream }) => {
    const type = stream ? EVENT_STREAM : JSON_TYPE
    const body = gzipSync(content(stream))
    wire.head(200, { ...type, 'content-encoding': coding, 'content-length': body.length })
    wire.unframed(body)
    wire.end()
  }

const moderation = JSON.stringify({
  error: { code: 403, message: `${PROVIDER_WORDS} requires moderation; your input was flagged` },
})

const bomb = () => `${WHOLE}${' '.repeat(40 * 1024 * 1024)}`

/** It begins correctly, and continues with one line that is far longer than any event may be. */
const streamedBomb = () => `${ROLE}${TEXT}data: ${' '.repeat(40 * 1024 * 1024)}`

const once =
  (script: Script): Script =>
  (call) =>
    call.number === 1 ? script(call) : sound(call)

const FIRST_ROUTES: Readonly<Record<string, Script>> = {
  hung: () => {},
  moderated: status(403, {}, moderation),
  forbidden: once(status(403)),
  limited: once(status(429)),
  zipped: compressed('gzip'),
  bomb: compressed('gzip', bomb),
  'streamed-bomb': compressed('gzip', streamedBomb),
  brotli: compressed('br'),
}

const ROUTES: readonly WorldRoute[] = [
  { model: 'sound', at: 'alpha', script: sound },
  { model: 'other', at: 'beta' },
  ...Object.entries(FIRST_ROUTES).map(([model, script]): WorldRoute => ({
    model,
    at: 'alpha',
    script,
  })),
]

/** Unpacking a swelling stream takes a second of CPU, before the first delta and beyond the usual limits on a busy machine. */
const TIMEOUTS = {
  sync_attempt_ms: undefined,
  first_delta_ms: 20_000,
  stream_open_ms: 30_000,
  stream_ms: 30_000,
}

let world: World
let customer: Customer

beforeAll(async () => {
  world = await openWorld(ROUTES, { timeouts: TIMEOUTS })
  customer = await world.newCustomer()
}, 120_000)
afterAll(() => world.close())

const keySetSchema = z.object({ keys: z.array(z.looseObject({ kid: z.string() })) })
const receiptSchema = z.object({ receipt: z.string() })

async function receiptOf(id: string | undefined): Promise<string> {
  const headers = { authorization: `Bearer ${customer.key}` }
  const answer = await world.stack.fetch(`/v1/receipts/${id}`, { headers })
  return receiptSchema.parse(await answer.json()).receipt
}

describe('the key set', () => {
  test('has the live key before anything was signed, so that a first receipt verifies', async () => {
    const url = new URL('/.well-known/jwks.json', world.stack.local.base_url)
    const before = keySetSchema.parse(await (await fetch(url)).json())
    expect(before.keys).toHaveLength(1)
    const keySet = createRemoteJWKSet(url, { cooldownDuration: 600_000 })
    await keySet.reload()
    const { receiptId } = await ask(world, customer, { model: 'sound', stream: false })
    const { protectedHeader } = await jwtVerify(await receiptOf(receiptId), keySet)
    expect(protectedHeader.kid).toBe(before.keys[0]?.kid)
  })
})

async function stateOf(model: string): Promise<unknown> {
  const routes = z.object({ data: z.array(z.looseObject({ route: z.string() })) })
  const { data } = routes.parse(await world.admin.call('GET', '/admin/routes'))
  return data.find(({ route }) => route === `alpha/${model}`)
}

describe('routing', () => {
  test('a first route that hangs leaves time for the next one, and is counted', async () => {
    const heard = await ask(world, customer, {
      model: 'hung',
      stream: false,
      more: { failover: ['other'] },
      headers: { 'X-Service-Timeout-Seconds': '6' },
    })
    expect(heard.words).toBe('200 stop "Hello from the other."')
    expect(await stateOf('hung')).toMatchObject({ errors: 1, last_failure: 'timeout' })
  })

  test.each(['limited', 'forbidden'])(
    'a first route that was %s once is asked first again',
    async (model) => {
      const heard = []
      for (let turn = 0; turn < 2; turn++) {
        const request = { model, stream: true, more: { failover: ['other'] } }
        heard.push((await ask(world, customer, request)).words)
      }
      expect(heard).toEqual([
        '200 stop "Hello from the other."',
        '200 stop "Hello from the first."',
      ])
      expect(await stateOf(model)).toMatchObject({ state: 'closed', errors: 1 })
    },
  )

  test('a 403 about the content is reported as such, and no other route is tried', async () => {
    const request = { model: 'moderated', stream: true, more: { failover: ['other'] } }
    const { words } = await ask(world, customer, request)
    expect(words).toBe('400 content_policy_violation')
    expect(await stateOf('moderated')).toMatchObject({ state: 'closed', errors: 0 })
  })
})

describe('an answer that comes compressed unasked', () => {
  test.each([
    ['streamed', true, STREAMED],
    ['whole', false, WHOLE],
  ])('is read, %s, and the receipt says what its digest is over', async (_how, stream, sent) => {
    const heard = await ask(world, customer, { model: 'zipped', stream })
    expect(heard.words).toBe('200 stop "Hello from the first."')
    expect(decodeJwt(await receiptOf(heard.receiptId))).toMatchObject({
      response_digest: createHash('sha256').update(sent).digest('hex'),
      response_digest_over: 'decoded',
    })
  })

  test('says nothing of coding where there was none', async () => {
    const { receiptId } = await ask(world, customer, { model: 'sound', stream: false })
    expect(decodeJwt(await receiptOf(receiptId))).not.toHaveProperty('response_digest_over')
  })

  test.each([
    ['bomb', '422 answer_too_long'],
    ['brotli', '502 bad_gateway'],
  ])('is refused beyond its bounds: %s', async (model, refusal) => {
    const { words } = await ask(world, customer, { model, stream: false })
    expect(words).toBe(refusal)
  })
})

test('a compressed stream that swells ends with an error, and what was delivered is billed once', async () => {
  const heard = await ask(world, customer, { model: 'streamed-bomb', stream: true })
  expect(heard.words).toBe('200 "Hello from the first." then bad_gateway')
  expect(heard.receiptId).toBeUndefined()
  const headers = { authorization: `Bearer ${customer.key}` }
  const usage = await world.stack.fetch('/v1/usage?model=alpha/streamed-bomb', { headers })
  const { data } = z
    .object({ data: z.array(z.looseObject({ receipt_id: z.null(), completion_tokens: z.int() })) })
    .parse(await usage.json())
  expect(data).toHaveLength(1)
  expect(data[0]?.completion_tokens).toBeGreaterThan(0)
  expect(data[0]?.completion_tokens).toBeLessThan(100)
})

describe('members of a request that the router does not know', () => {
  const body = (more: object) =>
    JSON.stringify({ model: 'sound', messages: [{ role: 'user', content: 'Hi' }], ...more })
  const post = (more: object) =>
    world.stack.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.key}` },
      body: body(more),
    })

  test.each([true, false])('are named where they were dropped (stream: %s)', async (stream) => {
    const answer = await post({ stream, min_p: 0.1, best_of: 2, 'a b': 1, store: null })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-service-dropped-members')).toBe('best_of, a%20b')
    await answer.text()
    const sent: unknown = JSON.parse(world.provider.calls('sound').at(-1)?.body ?? '')
    expect(sent).toHaveProperty('min_p', 0.1)
    expect(sent).not.toHaveProperty('best_of')
  })

  test('need no header where none was dropped', async () => {
    const answer = await post({ min_p: 0.1, logit_bias: {} })
    expect(answer.headers.get('x-service-dropped-members')).toBeNull()
  })

  test('are refused with a hint where they are the old form of tools', async () => {
    const { code, param, message } = await errorOf(await post({ functions: [] }))
    expect({ code, param }).toEqual({ code: 'invalid_request_error', param: 'functions' })
    expect(message).toContain('use "tools"')
  })
})

describe('HEAD', () => {
  test.each([
    '/v1/models',
    '/v1/models/sound',
    '/.well-known/jwks.json',
    '/.well-known/trust.json',
    '/attestation',
    '/healthz',
    '/v1/usage',
    '/v1/receipts/none',
    '/v1/models/none',
  ])('answers %s as GET does, without a body', async (path) => {
    const headers = { authorization: `Bearer ${customer.key}` }
    const get = await world.stack.fetch(path, { headers })
    const body = await get.arrayBuffer()
    const head = await world.stack.fetch(path, { method: 'HEAD', headers })
    expect(head.status).toBe(get.status)
    expect(await head.text()).toBe('')
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    expect(head.headers.get('content-length')).toBe(String(body.byteLength))
  })

  test('needs the key that GET needs', async () => {
    const url = `${world.stack.local.base_url}/v1/usage`
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(401)
  })

  test('is refused where there is no GET, and named where there is', async () => {
    const post = await world.stack.fetch('/v1/chat/completions', { method: 'HEAD' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'POST'])
    const models = await world.stack.fetch('/v1/models', { method: 'PUT' })
    expect([models.status, (await errorOf(models)).code]).toEqual([405, 'method_not_allowed'])
    expect(models.headers.get('allow')).toBe('GET, HEAD')
  })
})
