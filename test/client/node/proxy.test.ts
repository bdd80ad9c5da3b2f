import { request as httpRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../../src/client/index.ts'
import {
  createProxy,
  type LoopbackProxy,
  type ProxiedRequest,
} from '../../../src/client/node/proxy.ts'
import {
  clientOf,
  newKeyPair,
  startFakeRouter,
  type FakeRouter,
} from '../../support/fake-router.ts'
import { listen } from '../../support/listen.ts'
import { startManInTheMiddle } from '../../support/man-in-the-middle.ts'
import { LOG_POLICY } from '../../support/release-log.ts'
import { makeWorld, type World } from '../../support/synthetic-world.ts'
import { LOG_TAMPERINGS, TAMPERINGS } from '../../support/tamperings.ts'

let world: World
let host: FakeRouter
const open: { close(): unknown }[] = []

beforeAll(async () => {
  world = await makeWorld()
  host = await startFakeRouter(world, (request, response) => {
    response.setHeader('x-model', 'glm')
    response.end(request.method === 'HEAD' ? undefined : 'answered')
  })
}, 60_000)
afterAll(() => host.close())
afterEach(async () => {
  host.misbehave({})
  await Promise.all(open.splice(0).map((one) => one.close()))
})

interface Running extends LoopbackProxy {
  readonly port: number
  readonly answered: ProxiedRequest[]
}

async function proxyFor(router: Pick<FakeRouter, 'baseURL'>, apiKey?: string): Promise<Running> {
  const { options, deps } = clientOf(world, router, { policy: { logPolicy: LOG_POLICY } })
  const client = createClient(options, deps)
  const answered: ProxiedRequest[] = []
  const plan = { client, router: new URL(router.baseURL), apiKey, now: deps.now }
  const proxy = createProxy({ ...plan, onAnswered: (one) => answered.push(one) })
  const port = await listen(proxy.server)
  open.push({ close: () => proxy.server.close() }, client)
  return { ...proxy, port, answered }
}

async function call(
  { port }: Running,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
  method = body === undefined ? 'GET' : 'POST',
): Promise<{ status: number | undefined; headers: IncomingMessage['headers']; body: string }> {
  const outgoing = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false })
  outgoing.end(body)
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  if (response === undefined) throw new Error('no answer')
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

const CHAT = '/v1/chat/completions'

describe('the loopback proxy', () => {
  test.each(['//evil.example/v1/models', 'http://evil.example/v1/models', 'http://[/v1/models'])(
    'refuses %s, which is not on the router, and takes nothing from its proof',
    async (path) => {
      const proxy = await proxyFor(host, 'kept')
      expect((await call(proxy, '/v1/models')).status).toBe(200)
      const before = host.received.length
      const { status, body } = await call(proxy, path)
      expect([status, JSON.parse(body).error]).toEqual([
        400,
        {
          code: 'foreign_address',
          message: 'the request names another host than the router',
          type: 'proxy_error',
          param: null,
        },
      ])
      expect(proxy.state()).toMatchObject({ proven: true, problem: null })
      expect(proxy.answered.at(-1)).toMatchObject({ status: 400, receipt: undefined })
      expect(host.received.slice(before)).toEqual([])
    },
  )

  test.each([
    ['TRACE', '/v1/models', undefined],
    ['GET', '/v1/models', 'a body'],
    ['GET', '//name:password@HOST/v1/models', undefined],
  ])(
    'refuses %s %s, which nothing can pass on, and takes nothing from its proof',
    async (...of) => {
      const [method, path, body] = of
      const proxy = await proxyFor(host, 'kept')
      expect((await call(proxy, '/v1/models')).status).toBe(200)
      const before = host.received.length
      const named = path.replace('HOST', new URL(host.baseURL).host)
      const headers = body === undefined ? undefined : { 'content-length': `${body.length}` }
      const answer = await call(proxy, named, headers, body, method)
      expect([answer.status, JSON.parse(answer.body).error]).toEqual([
        400,
        {
          code: 'invalid_request',
          message: 'a request of this method, URL and body cannot be passed on',
          type: 'proxy_error',
          param: null,
        },
      ])
      expect(proxy.state()).toMatchObject({ proven: true, problem: null })
      expect(proxy.answered.at(-1)).toMatchObject({ status: 400, receipt: undefined })
      expect(host.received.slice(before)).toEqual([])
    },
  )

  test('passes any path on, with the kept key in place of what a tool sends', async () => {
    const proxy = await proxyFor(host, 'kept')
    const before = host.received.length
    const sent = {
      authorization: 'Bearer tool',
      'x-api-key': 'tool',
      cookie: 'a=b',
      'x-other': 'kept-as-it-is',
    }
    const answer = await call(proxy, '/v1/anything?a=1', sent, 'SECRET')
    expect(answer).toMatchObject({ status: 200, body: 'answered', headers: { 'x-model': 'glm' } })
    const [seen = ''] = host.received.slice(before)
    expect(seen).toMatch(/^POST \/v1\/anything\?a=1 .*SECRET$/)
    expect(seen).toContain('"authorization":"Bearer kept"')
    expect(seen).toContain('"x-other":"kept-as-it-is"')
    expect(seen).not.toMatch(/x-api-key|cookie|Bearer tool/)
    expect(proxy.answered).toMatchObject([{ method: 'POST', path: '/v1/anything', status: 200 }])
  })

  test("passes on a tool's own key where none is kept", async () => {
    const proxy = await proxyFor(host)
    const before = host.received.length
    await call(proxy, CHAT, { authorization: 'Bearer tool' }, '{}')
    expect(host.received[before]).toContain('"authorization":"Bearer tool"')
  })

  test.each([
    [{ host: 'evil.example' }, 'it was sent to another name than this machine'],
    [{ host: 'evil.example:8790' }, 'it was sent to another name than this machine'],
    [{ host: '127.0.0.1.evil.example' }, 'it was sent to another name than this machine'],
    [{ host: 'localhost', origin: 'https://evil.example' }, 'a web page sent it'],
    [{ host: 'localhost', origin: 'null' }, 'a web page sent it'],
    [{ host: 'localhost', origin: 'chrome-extension://abc' }, 'a browser extension sent it'],
    [{ host: 'localhost', origin: 'moz-extension://abc' }, 'a browser extension sent it'],
    [{ host: 'localhost', origin: 'safari-web-extension://abc' }, 'a browser extension sent it'],
    [{ host: 'localhost', 'sec-fetch-site': 'cross-site' }, 'a web page sent it'],
  ])('refuses %o, the proof page too', async (headers, reason) => {
    const proxy = await proxyFor(host, 'kept')
    const before = host.received.length
    for (const path of [CHAT, '/verification']) {
      const answer = await call(proxy, path, headers, 'SECRET')
      expect(answer.status).toBe(403)
      expect(JSON.parse(answer.body)).toMatchObject({
        error: { code: 'not_from_this_machine', message: `refused: ${reason}` },
      })
    }
    expect(host.received.length).toBe(before)
  })

  test.each([
    { host: 'localhost' },
    { host: '127.0.0.1:1' },
    { host: '[::1]:8790' },
    { host: 'localhost:8790', origin: 'http://localhost:3000' },
    { host: 'localhost', origin: 'tauri://localhost' },
    { host: 'localhost', origin: 'vscode-webview://abc' },
  ])('takes %o', async (headers) => {
    const answer = await call(await proxyFor(host), CHAT, headers, '{}')
    expect(answer.status).toBe(200)
    expect(answer.headers['access-control-allow-origin']).toBe(
      'origin' in headers ? headers.origin : undefined,
    )
  })

  test('shows what was proven, to programs and to people, and keeps nothing of it in caches', async () => {
    const proxy = await proxyFor(host)
    const before = await call(proxy, '/verification')
    expect(JSON.parse(before.body)).toMatchObject({ proven: false, problem: null, hosts: [] })
    await call(proxy, CHAT, {}, 'SECRET')
    const after = await call(proxy, '/verification')
    expect(after.headers['cache-control']).toBe('no-store')
    const state: unknown = JSON.parse(after.body)
    expect(state).toMatchObject({
      proven: true,
      problem: null,
      hosts: [{ tls_spki_sha256: host.spki }],
    })
    expect(state).toHaveProperty(['hosts', 0, 'checks', 0, 'proves'])
    // The answer of this host names no receipt.
    expect(state).toMatchObject({
      receipts: [{ holds: false, id: null, failed: ['receipt_missing'] }],
    })
    const page = await call(proxy, '/verification', { accept: 'text/html' })
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(page.body).toContain('<span class="ok">proven</span>')
    expect(page.body).toContain('report_signature')
    expect(after.body + page.body).not.toContain('SECRET')
  })

  test('says of an answer to a request for no receipt that none was asked for, and of its own that one is missing', async () => {
    const proxy = await proxyFor(host)
    await call(proxy, CHAT, { 'x-service-receipt': ' False' }, 'SECRET')
    expect(proxy.answered).toMatchObject([{ status: 200, receipt: 'not_asked_for' }])
    expect(proxy.state().receipts).toEqual([])
    await call(proxy, CHAT, { 'x-service-receipt': 'no' }, 'SECRET')
    expect(proxy.answered[1]).toMatchObject({ receipt: { ok: false, failed: ['receipt_missing'] } })
    expect(proxy.state().receipts).toMatchObject([{ failed: ['receipt_missing'] }])
  })

  test('cuts an answer where the router cut it', async () => {
    const cutting = await startFakeRouter(world, (_request, response) => {
      response.write('half')
      setImmediate(() => response.destroy())
    })
    open.push(cutting)
    await expect(call(await proxyFor(cutting), CHAT, {}, '{}')).rejects.toThrow(
      /aborted|hang up|reset/,
    )
  })

  test('distinguishes a router that is not reachable from one that is not proven', async () => {
    const gone = await startFakeRouter(world)
    gone.close()
    const answer = await call(await proxyFor(gone), CHAT, {}, 'SECRET')
    expect(answer.status).toBeGreaterThanOrEqual(502)
    expect(JSON.parse(answer.body)).toHaveProperty('error.type', 'proxy_error')
  })
})

describe('a tampered proof', () => {
  test.each([...TAMPERINGS, ...LOG_TAMPERINGS])(
    '$name is refused as $failed, and no byte of the prompt leaves',
    async (one) => {
      const proxy = await proxyFor(host, 'SECRET')
      host.misbehave(await one.misdeeds(host))
      const before = host.received.length
      const answer = await call(proxy, `${CHAT}?SECRET`, {}, 'SECRET')
      expect(answer.status).toBe(503)
      expect(JSON.parse(answer.body)).toMatchObject({
        error: { code: 'router_not_proven', failed: expect.arrayContaining([one.failed]) },
      })
      expect(host.received.slice(before)).toEqual([])
      expect(proxy.state()).toMatchObject({
        proven: false,
        problem: { failed: expect.arrayContaining([one.failed]) },
      })
    },
  )
})

describe('an impostor in the place of the router', () => {
  test('with a certificate that everybody trusts, and its evidence, gets nothing', async () => {
    const middle = await startManInTheMiddle(host)
    open.push(middle)
    const proxy = await proxyFor(middle, 'SECRET')
    const answer = await call(proxy, `${CHAT}?SECRET`, {}, 'SECRET')
    expect(answer.status).toBe(503)
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { code: 'router_not_proven', failed: ['tls_key'] },
    })
    expect(middle.read.length).toBeGreaterThan(0)
    expect(middle.read.join()).not.toContain('SECRET')
    expect(proxy.state()).toMatchObject({ proven: false, problem: { failed: ['tls_key'] } })
  })

  test('since it was proven gets nothing', async () => {
    const swapping = await startFakeRouter(world)
    open.push(swapping)
    const proxy = await proxyFor(swapping, 'key')
    expect((await call(proxy, CHAT, {}, '{}')).status).toBe(200)
    // Its receipt was asked for too.
    await expect.poll(() => proxy.answered.length, { timeout: 30_000 }).toBe(1)
    const [honest, before] = [swapping.spki, swapping.received.length]
    swapping.swapKey(await newKeyPair())
    swapping.misbehave({ envelopeSpki: honest })
    const answer = await call(proxy, CHAT, {}, 'SECRET')
    expect([502, 503]).toContain(answer.status)
    expect(JSON.parse(answer.body)).toHaveProperty('error.type', 'proxy_error')
    expect((await call(proxy, CHAT, {}, 'SECRET')).body).toContain('"failed":["tls_key"]')
    expect(swapping.received.slice(before)).toEqual([])
  })
})
