import { Agent, request } from 'undici'
import { z } from 'zod'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { content, DONE, EVENT_STREAM, ROLE, STOP, usageFrame } from '../faults/answers.ts'
import { worldConfig } from '../faults/world.ts'
import { gatherCrowd, type Crowd, type CrowdPlan } from '../support/crowd.ts'
import { startFaultProvider, type FaultProvider, type Script } from '../support/fault-provider.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** Clients without a key that occupy connections, while a customer is being served. */

/** The lowest limit with which the router starts; without the front, workerd crashed below 8,000 connections. */
const OPEN_FILES = 16_384
const PER_SOURCE = 300
const PLACES = 20

const CHAT = '/v1/chat/completions'

const keySchema = z.object({ key: z.string(), key_prefix: z.string() })

let provider: FaultProvider
let stack: Stack
const finish: (() => void)[] = []
let crowds: Crowd[] = []

const slowProvider: Script = ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE + content('Hello'))
  finish.push(() => {
    wire.send(STOP + usageFrame() + DONE)
    wire.end()
  })
}

beforeAll(async () => {
  provider = await startFaultProvider(() => slowProvider)
  const timeouts = { idle_ms: 60_000, stream_ms: 120_000 }
  const routes = [{ model: 'slow', at: 'alpha', script: slowProvider } as const]
  stack = await startStack({
    config: worldConfig(routes, provider.port, provider.port, { timeouts }),
    env: { CONNECTIONS_PER_SOURCE: String(PER_SOURCE), MAX_OPEN_REQUESTS: String(PLACES) },
    openFiles: OPEN_FILES,
  })
})
afterEach(async () => {
  for (const crowd of crowds.splice(0)) crowd.leave()
  // Streams of a test that failed, which would else be in progress in the next one.
  for (const end of finish.splice(0)) end()
  // Until the router has seen a crowd leave, a newcomer may find no room.
  await newcomerIsServed()
})
afterAll(async () => {
  await stack.stop()
  await provider.close()
})

function chat(): Promise<Response> {
  return stack.fetch(CHAT, {
    method: 'POST',
    body: JSON.stringify({
      model: 'slow',
      stream: true,
      messages: [{ role: 'user', content: 'Hello!' }],
    }),
  })
}

async function gather(plans: readonly CrowdPlan[]): Promise<readonly Crowd[]> {
  crowds = await Promise.all(plans.map(gatherCrowd))
  return crowds
}

/** A connection of its own; one that found no room is tried again, as clients do. */
async function newcomerIsServed(): Promise<void> {
  const ask = () => stack.fetch('/v1/models', { headers: { connection: 'close' } })
  let status: number | undefined
  await until(async () => {
    status = (await ask().catch(() => undefined))?.status
    return status === 200
  })
  expect(status).toBe(200)
}

/** Whether so many at once find room, because the router has seen all of a crowd leave. */
async function thereIsRoomFor(count: number): Promise<boolean> {
  const ask = () => getFrom('127.0.8.1', '/healthz').catch(() => 'no room')
  const answers = await Promise.all(Array.from({ length: count }, ask))
  return answers.every((answer) => answer === '200')
}

/** Starts a stream, lets unauthenticated clients connect, and ends the stream; new clients from other sources must be served meanwhile. */
async function streamThrough(plans: readonly CrowdPlan[]): Promise<readonly Crowd[]> {
  const { worker } = stack.localNow().pids
  const stream = await chat()
  expect(stream.status).toBe(200)
  const came = await gather(plans)
  for (let i = 0; i < 5; i++) await newcomerIsServed()
  for (const end of finish.splice(0)) end()
  expect(await stream.text()).toMatch(/data: \[DONE\]\n\n$/)
  expect(stack.localNow().pids.worker).toBe(worker)
  return came
}

const port = (url: string) => Number(new URL(url).port)
const sources = (net: number, count: number) =>
  Array.from({ length: count }, (_, index) => `127.0.${net}.${index + 1}`)

/** A GET from a separate address; returns the status and the code of an error. */
async function getFrom(localAddress: string, path: string, headers = {}): Promise<string> {
  const agent = new Agent({ localAddress })
  const { statusCode, body } = await request(stack.local.base_url + path, {
    dispatcher: agent,
    headers,
  })
  const text = await body.text()
  await agent.close()
  const code = /"code":"(\w+)"/.exec(text)?.[1] ?? ''
  return `${statusCode} ${code}`.trim()
}

const HALF_A_REQUEST = 'POST /v1/chat/completions HTTP/1.1\r\nhost: router.test\r\n'
/** The header of a TLS record with a hello, which never comes. */
const HALF_A_HELLO = '\u0016\u0003\u0001\u0002\u0000'

describe('a stream goes on to its end, and newcomers are served, beside', () => {
  test('20,000 connections of many sources that say nothing', { timeout: 120_000 }, async () => {
    const plan = { port: port(stack.local.base_url), count: 5_000 }
    const nets = [21, 22, 23, 24]
    const came = await streamThrough(nets.map((net) => ({ ...plan, from: sources(net, 25) })))
    expect(came.map(({ opened }) => opened)).toEqual(nets.map(() => 5_000))
  })

  test('one source that opens requests and does not end them', { timeout: 120_000 }, async () => {
    const at = port(stack.local.base_url)
    const [crowd] = await streamThrough([
      { port: at, count: 2_000, from: sources(3, 1), first: HALF_A_REQUEST },
    ])
    // On a busy machine they are ended a while after they have come.
    await expect.poll(() => crowd?.ended()).toBeGreaterThanOrEqual(2_000 - PER_SOURCE)
  })

  test('sources that open TLS and do not go on with it', { timeout: 120_000 }, async () => {
    const at = port(stack.local.tls_base_url)
    await streamThrough([{ port: at, count: 4_000, from: sources(4, 50), first: HALF_A_HELLO }])
    // Each of the fifty has a fiftieth, and as much is left for the next one: newcomers need not wait for anybody.
    const authority = new Agent({ connect: { rejectUnauthorized: false } })
    for (let newcomers = 0; newcomers < 5; newcomers++) {
      const url = `${stack.local.tls_base_url}/v1/models`
      const { statusCode, body } = await request(url, { dispatcher: authority, reset: true })
      await body.dump()
      expect(statusCode).toBe(200)
    }
    await authority.close()
  })
})

describe('fresh attestation', () => {
  test('is there for others when one stranger has used up what it may have', async ({ task }) => {
    // What an address may ask for in a minute is gone after a first try.
    const net = 9 + (task.result?.retryCount ?? 0)
    await until(() => thereIsRoomFor(70))
    const nonce = (n: number) => n.toString(16).padStart(64, '0')
    const ask = (from: string, n: number) =>
      getFrom(from, `/attestation?nonce=${nonce(n)}`, {
        // What a client claims about its address has no effect.
        'cf-connecting-ip': `198.51.100.${n}`,
        'x-forwarded-for': `198.51.100.${n}`,
      })
    const asked = await Promise.all(Array.from({ length: 70 }, (_, n) => ask(`127.0.${net}.1`, n)))
    expect(asked.filter((answer) => answer === '200')).toHaveLength(10)
    expect(asked.filter((answer) => answer === '429 rate_limit_exceeded')).toHaveLength(60)
    expect(await ask(`127.0.${net}.2`, 100)).toBe('200')
    expect(await getFrom(`127.0.${net}.1`, '/attestation')).toBe('200')
  })
})

describe('bodies that do not come hold no place of those that are for requests', () => {
  test.each(['nobody', 'a customer whose key was revoked'])('of %s', async (whose) => {
    const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
    const keys = `/admin/customers/${stack.local.customer_id}/keys`
    const { key, key_prefix: prefix } = keySchema.parse(
      await admin.call('POST', keys, { name: 'x' }),
    )
    await admin.call('DELETE', `${keys}/${prefix}`)
    const authorization = whose === 'nobody' ? {} : { authorization: `Bearer ${key}` }
    const head = rawRequest('POST', CHAT, { ...authorization, 'content-length': 100_000 }, '{')
    const slow = await Promise.all(
      Array.from({ length: 3 * PLACES }, () => RawClient.connect(stack.local.base_url)),
    )
    onTestFinished(() => slow.forEach((client) => client.leave()))
    for (const client of slow) client.send(head)
    const metrics = await stack.fetch('/admin/metrics', {
      headers: { authorization: `Bearer ${stack.local.admin_token}` },
    })
    expect(await metrics.text()).toMatch(/^cmr_open_requests 0$/m)
    const stream = await chat()
    expect(stream.status).toBe(200)
    for (const end of finish.splice(0)) end()
    expect(await stream.text()).toContain('[DONE]')
    // They still receive the reason, as soon as they read.
    const [first] = slow
    first?.send('x'.repeat(99_999))
    expect(await first?.hears('401 Unauthorized')).toBe(true)
  })

  const UPLOAD = '/v1/audio/transcriptions'
  const FORM = { 'content-type': 'multipart/form-data; boundary=b' }
  const LENGTH = { 'content-length': 1_000 }
  const CHUNKED = { 'transfer-encoding': 'chunked' }

  // Side by side: each of them takes as long as the router waits for a body.
  test.concurrent.each([
    ['a chat', CHAT, LENGTH],
    ['a chat of undeclared length', CHAT, CHUNKED],
    ['an upload', UPLOAD, { ...FORM, ...LENGTH }],
  ])('of %s of a customer, for longer than ten seconds', { timeout: 120_000 }, async (...of) => {
    const [, path, type] = of
    const authorization = `Bearer ${stack.local.api_key}`
    const head = rawRequest('POST', path, { authorization, ...type }, '1\r\n{\r\n')
    const slow = await RawClient.connect(stack.local.base_url)
    slow.send(head)
    expect(await slow.hears('408 Request Timeout', 30_000)).toBe(true)
    expect(slow.received).toContain('"code":"request_timeout"')
    slow.leave()
  })
})
