import { once } from 'node:events'
import { createServer, Server, type IncomingMessage } from 'node:http'
import { createServer as createRawServer, type Server as RawServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { freePort } from '../../support/free-port.ts'
import { listen } from '../../support/listen.ts'
import { poolHasLooked } from '../../support/pool-look.ts'
import { proofsOf } from '../../support/proven-channel.ts'
import { startRecordingProvider } from '../../support/recording-provider.ts'

const PROMPT = 'a prompt that nobody else may see'

let server: RawServer | undefined
let egress: Egress
let link: EgressLink
let asked: { readonly head: IncomingMessage; readonly body: string }[] = []

/** A provider without TLS. */
async function startPlain(): Promise<string> {
  asked = []
  const started = createServer((head, response) => {
    const parts: Buffer[] = []
    head.on('data', (part: Buffer) => parts.push(part))
    head.on('end', () => {
      asked.push({ head, body: Buffer.concat(parts).toString() })
      response.writeHead(200, {
        'x-cmr-evidence-sha256': 'ab'.repeat(32),
        'x-cmr-egress-error': 'provider_unproven',
      })
      response.end('{"hello":true}')
    })
  })
  server = started
  return `http://127.0.0.1:${await listen(started)}/v1`
}

const sound = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** A provider without TLS that answers each request with the next number, and sends more after the first answer. */
async function startTalkative(more: string, afterMs: number | undefined): Promise<string> {
  let count = 0
  const started = createRawServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      const answer = sound(String(++count))
      const isFirst = count === 1
      socket.write(isFirst && afterMs === undefined ? answer + more : answer)
      if (isFirst && afterMs !== undefined) setTimeout(() => socket.write(more), afterMs)
    })
  })
  server = started
  return `http://127.0.0.1:${await listen(started)}/v1`
}

/** An egress for `vega`, without attestation, and `nova`, whose proven key is this one; both have that address. */
async function open(baseUrl: string, spki = 'ab'.repeat(32)): Promise<void> {
  const proofs = proofsOf({ provider: 'nova', baseUrl, apiKey: 'key', webPki: false }, [spki])
  egress = createProviderEgress({
    proofs,
    connectMs: () => 5_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
  link = await startEgressLink(egress)
}

afterEach(async () => {
  egress.close()
  await link.close()
  if (server instanceof Server) server.closeAllConnections()
  server?.close()
})

const at = (baseUrl: string) => ({ 'x-cmr-unattested': baseUrl })
const refusal = (code: string, message: string) => JSON.stringify({ error: { code, message } })

describe('a call of a provider without attestation', () => {
  it('is carried to the address that the worker means, and no answer of it speaks for the daemon', async () => {
    const baseUrl = await startPlain()
    await open(baseUrl)
    const answer = await link.post('vega', PROMPT, {
      ...at(baseUrl),
      authorization: 'Bearer secret',
    })
    expect(answer).toMatchObject({ status: 200, text: '{"hello":true}' })
    expect(answer.headers).not.toHaveProperty('x-cmr-evidence-sha256')
    expect(answer.headers).not.toHaveProperty('x-cmr-egress-error')
    const [call] = asked
    expect([call?.head.method, call?.head.url, call?.body]).toEqual([
      'POST',
      '/v1/chat/completions',
      PROMPT,
    ])
    expect(call?.head.headers).toMatchObject({
      authorization: 'Bearer secret',
      'accept-encoding': 'identity',
    })
    expect(call?.head.headers).not.toHaveProperty('x-cmr-unattested')
  })

  it.each([
    ['together with its answers', (socket: Socket, answer: string) => void socket.end(answer)],
    [
      'right after them',
      (socket: Socket, answer: string) => {
        socket.write(answer)
        setImmediate(() => socket.end())
      },
    ],
  ])(
    'is answered by a provider that closes its connections %s, without a word',
    async (_when, end) => {
      const closing = createRawServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => {})
        socket.on('data', () => end(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'))
      })
      const baseUrl = `http://127.0.0.1:${await listen(closing)}/v1`
      await open(baseUrl)
      const statuses = new Set<number>()
      const askTwenty = async () => {
        for (let count = 0; count < 20; count += 1) {
          statuses.add((await link.post('vega', '{}', at(baseUrl))).status)
        }
      }
      await Promise.all(Array.from({ length: 12 }, askTwenty))
      expect([...statuses]).toEqual([200])
      closing.close()
    },
  )

  it('uses a connection again', async () => {
    const baseUrl = await startPlain()
    await open(baseUrl)
    for (const body of ['one', 'two', 'three']) {
      await link.post('vega', body, at(baseUrl))
      await poolHasLooked()
    }
    expect(new Set(asked.map(({ head }) => head.socket.remotePort)).size).toBe(1)
  })

  it.each([
    ['another answer, at once', sound('nobody asked'), undefined],
    ['another answer, while the connection rests', sound('nobody asked'), 10],
    ['the beginning of another answer', 'HTTP/1.1 200 OK\r\nx-begun: ', 10],
    ['more than it declared', 'and more', undefined],
  ])(
    'gets nothing of what a provider sent after the answer to an earlier one: %s',
    async (_what, more, afterMs) => {
      const baseUrl = await startTalkative(more, afterMs)
      await open(baseUrl)
      expect(await link.post('vega', 'one', at(baseUrl))).toMatchObject({ status: 200, text: '1' })
      await delay(50)
      const next = await link.post('vega', 'two', at(baseUrl))
      expect(next).toMatchObject({ status: 200, text: '2' })
      expect(next.headers).not.toHaveProperty('x-begun')
    },
  )

  it.each([
    ['an address that it does not have', 'vega', 'http://127.0.0.1:9/v1'],
    ['a name that is unknown', 'nobody', undefined],
    ['an attested provider', 'nova', undefined],
  ])('is refused for %s', async (_what, name, other) => {
    const baseUrl = await startPlain()
    await open(baseUrl)
    const answer = await link.post(name, PROMPT, at(other ?? baseUrl))
    expect(answer).toMatchObject({
      status: 404,
      text: refusal('not_found', 'no provider of that name and address without attestation'),
    })
    expect(answer.headers['x-cmr-egress-error']).toBe('not_found')
    expect(asked).toEqual([])
  })

  it('is refused where the worker does not say that it needs no proof', async () => {
    const baseUrl = await startPlain()
    await open(baseUrl)
    const answer = await link.post('vega', PROMPT)
    expect(answer).toMatchObject({
      status: 400,
      text: refusal('invalid_request', 'this provider has no attestation'),
    })
    expect(asked).toEqual([])
  })

  it.each([
    ['evidence', 'simulated', '`min`'],
    ['another provider', 'none;providers=nova', '`providers`'],
  ])('is refused where the caller demands %s', async (_what, require, member) => {
    const baseUrl = await startPlain()
    await open(baseUrl)
    const headers = { ...at(baseUrl), 'x-cmr-require': `min=${require}` }
    const answer = await link.post('vega', PROMPT, headers)
    expect(answer.status).toBe(412)
    expect(answer.text).toBe(refusal('constraints_unmet', `the provider does not meet ${member}`))
    expect(asked).toEqual([])
  })

  it('is refused by a closed port as unreachable', async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}/v1`
    await open(baseUrl)
    const answer = await link.post('vega', PROMPT, at(baseUrl))
    expect(answer).toMatchObject({
      status: 502,
      text: refusal('provider_unreachable', 'the provider cannot be reached'),
    })
  })

  it('sends nothing over TLS to a host without a publicly valid certificate', async () => {
    const provider = await startRecordingProvider(
      (_request, response) => void response.end('{}'),
      await makeTlsIdentity([], new Date()),
    )
    const baseUrl = `https://127.0.0.1:${provider.port}/v1`
    await open(baseUrl)
    const answer = await link.post('vega', PROMPT, at(baseUrl))
    expect(answer).toMatchObject({
      status: 502,
      text: refusal('provider_unreachable', 'the provider cannot be reached'),
    })
    expect(provider.received()).toBe('')
    await provider.close()
  })

  it('ends with its caller', async () => {
    const gone = Promise.withResolvers<void>()
    const silent = createServer((request) => void request.once('close', () => gone.resolve()))
    server = silent
    const baseUrl = `http://127.0.0.1:${await listen(silent)}/v1`
    await open(baseUrl)
    const leave = new AbortController()
    const call = link.open('vega', PROMPT, leave.signal, at(baseUrl)).catch(() => 'left')
    await once(silent, 'request')
    leave.abort()
    expect(await call).toBe('left')
    await gone.promise
  })
})
