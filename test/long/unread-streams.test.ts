import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { content, EVENT_STREAM, ROLE } from '../faults/answers.ts'
import { PROMPT } from '../faults/ask.ts'
import { settledLedger } from '../faults/ledger.ts'
import { openWorld, type StackWorld } from '../faults/world.ts'
import type { Script } from '../support/fault-provider.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'

/** Clients that take nothing more of a stream, long before the time that it may last is over. */

const MODEL = 'flood'

/**
 * Deltas without end, as fast as they are taken. Each is so short that all buffers on the way are full long before the text
 * is longer than an answer's may be.
 */
const flood: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE)
  const deltas = content('yyyy').repeat(1_000)
  while (!wire.over) await wire.sendSlowly(deltas)
}

const API_FORMATS = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: PROMPT }] },
  '/v1/responses': { input: PROMPT },
  '/v1/messages': { max_tokens: 100, messages: [{ role: 'user', content: PROMPT }] },
} as const

/** Nothing but the client may end a stream, and no other time limit passes before the test is over. */
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const timeouts = {
  // A flood beside it keeps a stream waiting for its own beginning, on a busy machine for seconds.
  connect_ms: MINUTE_MS,
  headers_ms: MINUTE_MS,
  first_delta_ms: MINUTE_MS,
  stream_headers_after_ms: MINUTE_MS,
  stream_open_ms: HOUR_MS,
  idle_ms: HOUR_MS,
  stream_ms: HOUR_MS,
}

/** How long a client may take for what waits for it: much less than the five minutes that it is given otherwise. */
const UNREAD_SECONDS = 10

/** Longer than that, and than all that a slow machine needs besides. */
const TEST_MS = 400_000

describe.each([
  ['a provider that is called directly', false],
  ['an attested provider', true],
] as const)('a stream of %s that its client leaves unread', (_, pinned) => {
  let world: StackWorld

  beforeAll(async () => {
    const env = { UNREAD_SECONDS: String(UNREAD_SECONDS) }
    world = await openWorld([{ model: MODEL, at: 'alpha', script: flood }], {
      pinned,
      timeouts,
      env,
    })
  }, 120_000)
  afterAll(() => world.close())

  test.concurrent.each(Object.entries(API_FORMATS))(
    'is ended once its time is over and billed once (%s)',
    async (path, members) => {
      const customer = await world.newCustomer()
      const client = await RawClient.connect(world.stack.local.base_url)
      const body = JSON.stringify({ model: MODEL, stream: true, user: customer.id, ...members })
      const headers = { authorization: `Bearer ${customer.key}`, 'content-length': body.length }
      client.send(rawRequest('POST', path, headers, body))
      expect(await client.hears('yyyy', 60_000)).toBe(true)
      client.pause()
      const begunAt = performance.now()
      const one = /^alpha \d+\+\d+, no receipt$/
      const books = () => settledLedger(world, customer, (seen) => one.test(seen)).catch(String)
      await expect.poll(books, { timeout: 300_000 }).toMatch(one)
      expect(performance.now() - begunAt).toBeGreaterThan((UNREAD_SECONDS * 1_000) / 2)
      client.reset()
    },
    TEST_MS,
  )

  test('is counted in the metrics', async () => {
    const { base_url: url, admin_token: token } = world.stack.local
    const metrics = async () => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${url}/admin/metrics`, { headers })).text()
    }
    const count = Object.keys(API_FORMATS).length
    await expect
      .poll(metrics, { timeout: 60_000 })
      .toContain(`\ncmr_clients_unread_total ${count}\n`)
  })

  test('lets go of its provider', async () => {
    const calls = world.provider.calls(MODEL)
    expect(calls.length).toBeGreaterThanOrEqual(Object.keys(API_FORMATS).length)
    await expect.poll(() => calls.every(({ wire }) => wire.over), { timeout: 60_000 }).toBe(true)
  })
})
