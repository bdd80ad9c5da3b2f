import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { errorOf } from '../support/answers.ts'
import type { Script } from '../support/fault-provider.ts'
import { openRequestsOf } from '../support/open-requests.ts'
import { RawClient, rawRequest } from '../support/raw-client.ts'
import { until } from '../support/stack.ts'
import { standstill } from '../support/standstill.ts'
import {
  answering,
  completion,
  content,
  DONE,
  EVENT_STREAM,
  ROLE,
  STOP,
  usageFrame,
} from '../faults/answers.ts'
import { openWorld, type Customer, type World } from '../faults/world.ts'

/** Of the places in all, one customer has half. */
const PLACES = 6
const MOST = 3

const MIB = 1024 * 1024
const LARGE_BYTES = 12 * MIB
const ASKED_AT_ONCE = 4

let world: World
let customer: Customer
/** Ends the streams that have begun. */
const finish: (() => void)[] = []

const slow: Script = ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE + content('Hello'))
  finish.push(() => {
    wire.send(STOP + usageFrame() + DONE)
    wire.end()
  })
}

const LARGE = JSON.stringify(completion({ content: 'x'.repeat(LARGE_BYTES) }))

/** A large answer that is made when the test says so. */
const late: Script = (call) => {
  finish.push(() => void answering('', LARGE)(call))
}

/** An event of 15 MiB of which the end does not come. */
const unfinished: Script = ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(`data: {"choices":[{"delta":{"content":"${'x'.repeat(15 * MIB)}`)
}

beforeAll(async () => {
  const env = { MAX_OPEN_REQUESTS: String(PLACES) }
  const timeouts = {
    headers_ms: 30_000,
    stream_headers_after_ms: 30_000,
    first_delta_ms: 30_000,
    stream_open_ms: 60_000,
    idle_ms: 60_000,
    stream_ms: 120_000,
    sync_attempt_ms: undefined,
  }
  world = await openWorld(
    [
      { model: 'slow', at: 'alpha', script: slow },
      { model: 'large', at: 'alpha', script: answering('', LARGE) },
      { model: 'late', at: 'alpha', script: late },
      { model: 'unfinished', at: 'alpha', script: unfinished },
    ],
    // The worker reads streams itself, so that what it keeps of them is in its own memory.
    { env, timeouts, pinned: false },
  )
  customer = await world.newCustomer()
})
afterEach(async () => {
  // Those of a test that failed would take places from the next one.
  for (const end of finish.splice(0)) end()
  await until(async () => (await openRequests()) === 0)
})
afterAll(() => world.close())

function chat(): Promise<Response> {
  return world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.key}` },
    body: JSON.stringify({
      model: 'slow',
      stream: true,
      messages: [{ role: 'user', content: 'Hello!' }],
    }),
  })
}

const openRequests = () => openRequestsOf(world.stack)

/** A client that asks so many times for the same without reading any answer. */
async function asking({ key }: Customer, model: string, times: number): Promise<RawClient> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }] })
  const headers = { authorization: `Bearer ${key}`, 'content-length': body.length }
  const client = await RawClient.connect(world.stack.local.base_url)
  // Also of a test that failed, so that it can be tried again.
  onTestFinished(() => client.leave())
  client.pause()
  client.send(rawRequest('POST', '/v1/chat/completions', headers, body).repeat(times))
  return client
}

/**
 * Whether each of the clients has a request in progress. The end of an answer may be on its way where the router has let go of
 * it and the next has not begun; so each takes a little more until none is there.
 */
async function hold(clients: readonly RawClient[]): Promise<boolean> {
  if ((await openRequests()) === clients.length) return true
  await Promise.all(clients.map((client) => client.take(MIB)))
  return false
}

function receiptOf({ key }: Customer): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` }
  return world.stack.fetch('/v1/receipts/none', { headers })
}

describe('with as many requests in progress as are allowed', () => {
  test('one more is refused, monitoring is served, and places come free', async () => {
    const streams = await Promise.all(Array.from({ length: MOST }, chat))
    expect(streams.map(({ status }) => status)).toEqual(Array(MOST).fill(200))
    expect(await openRequests()).toBe(MOST)

    const refused = await chat()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await errorOf(refused)).toMatchObject({
      code: 'rate_limit_exceeded',
      message: 'You already have as many open requests as your share of the router allows.',
    })
    const other = await world.newCustomer()
    expect((await receiptOf(other)).status).toBe(404)
    for (const path of ['/healthz', '/v1/models', '/.well-known/jwks.json']) {
      expect((await world.stack.fetch(path)).status).toBe(200)
    }

    for (const end of finish.splice(0)) end()
    const texts = await Promise.all(streams.map((stream) => stream.text()))
    expect(texts.filter((text) => text.endsWith('data: [DONE]\n\n'))).toHaveLength(MOST)
    await until(async () => (await openRequests()) === 0)
    expect(await openRequests()).toBe(0)
    const next = await chat()
    expect(next.status).toBe(200)
    finish.splice(0)[0]?.()
    expect(await next.text()).toContain('[DONE]')
  })

  test('a place is given back by clients that leave and by requests that fail', async () => {
    for (let i = 0; i < MOST; i++) {
      const { body } = await chat()
      void body?.cancel()
    }
    await until(async () => (await openRequests()) === 0)
    expect(await openRequests()).toBe(0)
    for (let i = 0; i <= MOST; i++) {
      expect((await world.stack.fetch('/v1/receipts/none')).status).toBe(404)
    }
  })
})

describe('memory that one customer occupies', () => {
  test(
    'is that of large answers too, until their clients have taken them',
    { timeout: 120_000 },
    async () => {
      const lazy = await world.newCustomer()
      // What is in flight to a client may be in the buffers of the kernel, so each asks for more than fits into those.
      const clients = await Promise.all(
        Array.from({ length: MOST }, () => asking(lazy, 'large', ASKED_AT_ONCE)),
      )
      await standstill(() => world.provider.calls('large').length)
      await until(() => hold(clients))
      const [reading, ...leaving] = clients
      reading?.resume()
      await until(() => (reading?.bytesReceived ?? 0) > ASKED_AT_ONCE * LARGE_BYTES)
      await until(() => hold(leaving))
      for (const client of leaving) client.leave()
      await until(async () => (await openRequests()) === 0)
      expect(await openRequests()).toBe(0)
    },
  )

  test('is not that of a large answer whose client left before it came', async () => {
    const client = await asking(await world.newCustomer(), 'late', 1)
    await until(() => finish.length > 0)
    client.leave()
    for (const end of finish.splice(0)) end()
    await until(async () => (await openRequests()) === 0)
    expect(await openRequests()).toBe(0)
  })

  test(
    'is that of what an answer repeats of its request, which is refused beyond a share',
    { timeout: 120_000 },
    async () => {
      const wordy = await world.newCustomer({ balance_eur: '1000.00' })
      const respond = () =>
        world.stack.fetch('/v1/responses', {
          method: 'POST',
          headers: { authorization: `Bearer ${wordy.key}` },
          body: JSON.stringify({
            model: 'slow',
            stream: true,
            instructions: 'x'.repeat(9 * MIB),
            input: 'Hello!',
          }),
        })
      const [first, second] = [await respond(), await respond()]
      expect([first.status, second.status]).toEqual([200, 200])
      const refused = await respond()
      expect([refused.status, await errorOf(refused)]).toMatchObject([
        429,
        {
          code: 'rate_limit_exceeded',
          message:
            'The router holds as many of your request bodies as it can carry beside those of others.',
        },
      ])
      for (const end of finish.splice(0)) end()
      for (const answer of [first, second])
        expect(await answer.text()).toContain('response.completed')
    },
  )

  test('is that of an event of a stream which has come in part', { timeout: 120_000 }, async () => {
    const ask = async (path: string, asked: object) => {
      const { key } = await world.newCustomer({ balance_eur: '1000.00' })
      return world.stack.fetch(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ ...asked, stream: true }),
      })
    }
    // Each takes six times as much as its instructions; together they leave 13 of 256 MiB.
    const opened = []
    for (const mib of [9, 9, 9, 9, 4.5]) {
      const instructions = 'x'.repeat(mib * MIB)
      opened.push(await ask('/v1/responses', { model: 'slow', instructions, input: 'Hello!' }))
    }
    expect(opened.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const messages = [{ role: 'user', content: 'Hello!' }]
    const refused = await ask('/v1/chat/completions', { model: 'unfinished', messages })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await errorOf(refused)).toMatchObject({
      code: 'service_unavailable',
      message: 'The router has no memory left for so large an event of the answer.',
    })
    for (const end of finish.splice(0)) end()
    for (const answer of opened) await answer.body?.cancel()
    await until(async () => (await openRequests()) === 0)
  })
})
