import { createServer } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import type { Client } from '../../src/client/client.ts'
import { memoryState } from '../../src/client/memory-state.ts'
import type { ClientOptions } from '../../src/client/options.ts'
import { clientOf, newKeyPair, startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { listen } from '../support/listen.ts'
import { LOG_POLICY } from '../support/release-log.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'
import { startTcpBalancer } from '../support/tcp-balancer.ts'

let world: World
const open: { close(): unknown }[] = []

beforeAll(async () => {
  world = await makeWorld()
}, 60_000)
afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(open.splice(0).map((one) => one.close()))
})

async function router(
  ...args: Parameters<typeof startFakeRouter> extends [World, ...infer Rest] ? Rest : never
) {
  const started = await startFakeRouter(world, ...args)
  open.push(started)
  return started
}

function clientFor(started: Pick<FakeRouter, 'baseURL'>, more: Partial<ClientOptions> = {}) {
  const { options, deps, pass } = clientOf(world, started, more)
  const client = createClient(options, deps)
  open.unshift(client)
  return { client, pass }
}

const PROMPT = 'the prompt that nobody else may read'

function relay(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one)
  one.on('error', () => other.destroy())
  other.on('error', () => one.destroy())
}

function ask(client: Client, { baseURL }: Pick<FakeRouter, 'baseURL'>): Promise<Response> {
  return client.fetch(`${baseURL}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: PROMPT }] }),
  })
}

describe('a pinned fetch', () => {
  test('proves the host with a nonce of its own and then sends on the same connection', async () => {
    const host = await router()
    const { client } = clientFor(host)
    const answer = await ask(client, host)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toHaveProperty('service.receipt_id')
    expect(host.received).toHaveLength(1)
    expect(host.received[0]).toContain(PROMPT)
    const [proof] = client.proofs()
    expect(proof?.tlsSpkiSha256).toBe(host.spki)
    expect(proof?.envelope.report_data_binding?.nonce).toBe('1'.padStart(64, '0'))
    expect(proof?.checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['trust_bundle_signature', 'report_signature', 'nonce', 'tls_key']),
    )
  })

  test('reports no receipt as missing that the request asked not to have, but verifies one that is named all the same', async () => {
    const named = await router()
    const silent = await router((_request, response) => response.end('{"choices":[]}'))
    const post = async (host: FakeRouter, wanted: string) => {
      const reported: (readonly string[])[] = []
      const { client } = clientFor(host, { onReceipt: ({ failed }) => reported.push(failed) })
      const answer = await client.fetch(`${host.baseURL}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-service-receipt': wanted },
        body: '{}',
      })
      await answer.text()
      const outcome = await client.receipts.of(answer)
      await client.receipts.settled()
      return { outcome: outcome?.failed, reported }
    }
    expect(await post(silent, 'false')).toEqual({ outcome: undefined, reported: [] })
    const missing = ['receipt_missing']
    expect(await post(silent, 'true')).toEqual({ outcome: missing, reported: [missing] })
    const unavailable = ['receipt_unavailable']
    expect(await post(named, 'false')).toEqual({ outcome: unavailable, reported: [unavailable] })
  })

  test('asks for evidence once, however many requests and connections follow', async () => {
    const host = await router()
    const { client } = clientFor(host)
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(client, host)))
    await Promise.all(answers.map((answer) => answer.text()))
    await (await ask(client, host)).text()
    expect(host.received).toHaveLength(13)
    expect(host.connections()).toBeGreaterThan(3)
    expect(host.evidenceAsked()).toBe(1)
  })

  test('opens the connection for the bundle beside the one for the prompt, not before or after it', async () => {
    const host = await router()
    const waiting: Socket[] = []
    let held = true
    // Nothing passes, not even a handshake, before there are two connections.
    const front = createTcpServer((client) => {
      waiting.push(client)
      if (held && waiting.length < 2) return
      held = false
      for (const one of waiting.splice(0)) relay(one, connect(host.port, '127.0.0.1'))
    })
    const address = { baseURL: `https://127.0.0.1:${await listen(front)}` }
    const { client } = clientFor(address)
    expect((await ask(client, address)).status).toBe(200)
    await client.close()
    front.close()
  })

  test('keeps connections open', async () => {
    const host = await router()
    const { client } = clientFor(host)
    for (let i = 0; i < 20; i++) await (await ask(client, host)).text()
    // One for the trust bundle, and one or two for the requests.
    expect(host.connections()).toBeLessThanOrEqual(3)
  })

  test('connects again where the host has let go', async () => {
    const host = await router()
    const { client } = clientFor(host)
    await (await ask(client, host)).text()
    host.dropIdle()
    // Until the client has noticed, a request may meet the closed connection, as with any fetch.
    await vi.waitFor(async () => expect((await ask(client, host)).status).toBe(200))
    expect(host.evidenceAsked()).toBe(1)
  })

  test('asks for fresh evidence when it expires, while a running stream is completed', async () => {
    const streams: ServerResponse[] = []
    const host = await router((_request, response) => {
      response.setHeader('content-type', 'text/event-stream')
      response.write('data: {"first":1}\n\n')
      streams.push(response)
    })
    const { client, pass } = clientFor(host)
    const running = await ask(client, host)
    const reader = running.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('first')
    pass(3_600_000)
    expect(client.proofs()).toEqual([])
    host.misbehave({
      envelope: (honest) => ({ claimed: { ...honest.claimed, issued_at: '2026-11-20T12:59:30Z' } }),
    })
    const next = await ask(client, host)
    expect(host.evidenceAsked()).toBe(2)
    for (const stream of streams) stream.end('data: {"last":1}\n\n')
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('last')
    expect((await reader?.read())?.done).toBe(true)
    await next.text()
  })

  test('fails new requests when evidence expires and no fresh one holds', async () => {
    const host = await router()
    const { client, pass } = clientFor(host)
    await (await ask(client, host)).text()
    pass(3_800_000)
    await expect(ask(client, host)).rejects.toMatchObject({
      code: 'attestation_refused',
      failed: ['freshness'],
    })
    expect(host.received).toHaveLength(1)
  })

  test('follows a host to its new key, which the new evidence names', async () => {
    const host = await router()
    const { client } = clientFor(host)
    await (await ask(client, host)).text()
    const before = host.spki
    host.swapKey(await newKeyPair())
    // The first may meet the connection that is ending; on a busy machine a second is soon over.
    await vi.waitFor(async () => (await ask(client, host)).text(), { timeout: 10_000 })
    expect(host.spki).not.toBe(before)
    expect(client.proofs().map(({ tlsSpkiSha256 }) => tlsSpkiSha256)).toEqual([before, host.spki])
  })

  test('proves each host of a fleet behind a TCP balancer by its own evidence', async () => {
    const hosts = await Promise.all([router(), router(), router()])
    const balancer = await startTcpBalancer(hosts.map(({ port }) => port))
    open.push(balancer)
    const front = { baseURL: `https://127.0.0.1:${balancer.port}` }
    const { client } = clientFor(front)
    const answers = await Promise.all(Array.from({ length: 9 }, () => ask(client, front)))
    await Promise.all(answers.map((answer) => answer.text()))
    expect(hosts.map((host) => host.received.length > 0)).toEqual([true, true, true])
    expect(client.proofs()).toHaveLength(3)
  })

  test('goes through the proxy that HTTPS_PROXY names, and proves what is behind it', async () => {
    const host = await router()
    const targets: string[] = []
    const proxy = createServer()
    proxy.on('connect', (request, client) => {
      targets.push(`${request.url} ${request.headers['proxy-authorization']}`)
      const server = connect(host.port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        server.pipe(client).pipe(server)
      })
      client.on('error', () => server.destroy())
      server.on('error', () => client.destroy())
    })
    open.push({ close: () => void proxy.close() })
    vi.stubEnv('HTTPS_PROXY', `http://user:word@127.0.0.1:${await listen(proxy)}`)
    vi.stubEnv('NO_PROXY', '')
    const { client } = clientFor(host)
    expect((await ask(client, host)).status).toBe(200)
    expect(new Set(targets)).toEqual(new Set([`127.0.0.1:${host.port} Basic dXNlcjp3b3Jk`]))
    await client.close()
  })

  test('tells of a proxy that refuses', async () => {
    const host = await router()
    const proxy = createServer((_request, response) => response.writeHead(407).end())
    proxy.on('connect', (_request, client) => client.end('HTTP/1.1 407 Who are you\r\n\r\n'))
    open.push({ close: () => void proxy.close() })
    vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${await listen(proxy)}`)
    const { client } = clientFor(host)
    await expect(ask(client, host)).rejects.toMatchObject({
      cause: { message: 'the proxy answers 407' },
    })
  })

  test.each(['socks5://user:word@127.0.0.1:1', 'http://user:word@127.0.0.1:port'])(
    'asks nothing through %s, and does not quote its password',
    async (address) => {
      const host = await router()
      vi.stubEnv('HTTPS_PROXY', address)
      vi.stubEnv('NO_PROXY', '')
      const { client } = clientFor(host)
      await expect(ask(client, host)).rejects.toMatchObject({
        code: 'invalid_options',
        message:
          'the proxy of the environment (HTTPS_PROXY or ALL_PROXY) has no http or https address',
      })
      expect(host.connections()).toBe(0)
    },
  )

  test('takes whatever fetch takes: a Request, a form, an aborted signal', async () => {
    const host = await router()
    const { client } = clientFor(host)
    const url = `${host.baseURL}/v1/audio/transcriptions`
    const form = new FormData()
    form.set('file', new File(['RIFF'], 'a.wav'))
    await (await client.fetch(new Request(url, { method: 'POST', body: form }))).text()
    expect(host.received[0]).toMatch(/multipart\/form-data; boundary=.*filename="a.wav"/s)
    expect(host.received[0]).toMatch(/"content-length":"\d+"/)
    const signal = AbortSignal.abort()
    await expect(client.fetch(url, { method: 'POST', body: 'x', signal })).rejects.toMatchObject({
      name: 'AbortError',
    })
  })

  test('sends nothing to another address', async () => {
    const [host, other] = [await router(), await router()]
    const { client } = clientFor(host)
    await expect(ask(client, other)).rejects.toMatchObject({ code: 'foreign_address' })
    expect(other.connections()).toBe(0)
  })

  test('follows no redirect', async () => {
    const other = await router()
    const host = await router((_request, response) => {
      response.writeHead(307, { location: `${other.baseURL}/v1/chat/completions` }).end()
    })
    const { client } = clientFor(host)
    expect((await ask(client, host)).status).toBe(307)
    expect(other.connections()).toBe(0)
  })

  test.each([
    [{ baseURL: 'ftp://x' }, 'baseURL: give the address of the router'],
    [{ baseURL: 'http://127.0.0.1:1' }, 'baseURL: without TLS there is no key to compare'],
    [
      { baseURL: 'https://user:word@router.test' },
      'baseURL: leave out user name and password, which no request takes along',
    ],
    [{ policy: { logPolicy: {} } }, 'policy.logPolicy: the log policy: log: '],
    [{ rootKey: { kty: 'EC' } }, "rootKey: give the release root's public JWK"],
  ])('refuses %o', (wrong, message) => {
    const { options, deps } = clientOf(world, { baseURL: 'https://router.test' }, wrong)
    expect(() => createClient(options, deps)).toThrow(message)
  })

  test('proves that a release is in the public log where its policy names one', async () => {
    const host = await router()
    const { client } = clientFor(host, { policy: { logPolicy: LOG_POLICY } })
    expect((await ask(client, host)).status).toBe(200)
    const checks = client.proofs().flatMap((proof) => proof.checks)
    expect(checks.filter(({ name }) => name.endsWith('_logged'))).toMatchObject([
      { name: 'trust_bundle_logged', ok: true, detail: expect.stringContaining('entry 1 of 2 in') },
      { name: 'manifest_logged', ok: true, detail: expect.stringContaining(', 1 witnesses') },
    ])
  })

  test('refuses a release that is not in the public log where its policy requires that', async () => {
    const host = await router()
    host.misbehave({ logProofs: () => undefined })
    const strict = clientFor(host, { policy: { logPolicy: LOG_POLICY } }).client
    await expect(ask(strict, host)).rejects.toMatchObject({
      code: 'attestation_refused',
      failed: ['trust_bundle_logged', 'manifest_logged'],
    })
    expect(host.received).toEqual([])
    const lenient = { ...LOG_POLICY, required: false }
    const { client } = clientFor(host, { policy: { logPolicy: lenient } })
    expect((await ask(client, host)).status).toBe(200)
    expect(client.proofs()[0]?.notes.join()).toContain('trust_bundle_logged: no_proof')
  })

  test('asks again after the time that a router names which has given too many reports', async () => {
    const host = await router()
    host.misbehave({ limited: { times: 1, retryAfter: 17 } })
    const pauses: number[] = []
    const { options, deps } = clientOf(world, host)
    const pause = async (milliseconds: number) => void pauses.push(milliseconds)
    const client = createClient(options, { ...deps, pause })
    open.unshift(client)
    expect((await ask(client, host)).status).toBe(200)
    expect(pauses).toEqual([17_000])
    expect(host.evidenceAsked()).toBe(2)
  })

  test('tells a host that is away from one that is refused', async () => {
    const host = await router()
    host.close()
    const { client } = clientFor(host)
    await expect(ask(client, host)).rejects.not.toMatchObject({ code: 'attestation_refused' })
  })

  test('shares what it has seen of bundles: an older one is refused later', async () => {
    const state = memoryState()
    const host = await router()
    await (await ask(clientFor(host, { state }).client, host)).text()
    host.misbehave({ bundle: { version: 6 } })
    await expect(ask(clientFor(host, { state }).client, host)).rejects.toMatchObject({
      failed: ['trust_bundle_version'],
    })
    expect(host.received).toHaveLength(1)
  })
})
