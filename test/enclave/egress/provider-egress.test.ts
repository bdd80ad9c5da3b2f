import { createServer } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { listen } from '../../support/listen.ts'
import { evidenceFor, proofsOf, type CountedProofs } from '../../support/proven-channel.ts'
import {
  startRecordingProvider,
  type RecordingProvider,
  type Respond,
} from '../../support/recording-provider.ts'
import { standstill } from '../../support/standstill.ts'

const PROMPT = 'a prompt that nobody else may see'

let keys: readonly [DaemonTls, DaemonTls, DaemonTls]
let provider: RecordingProvider
let link: EgressLink
let egress: Egress

const makeKey = () => makeTlsIdentity([], new Date())

beforeAll(async () => {
  keys = await Promise.all([makeKey(), makeKey(), makeKey()])
})
afterEach(async () => {
  egress.close()
  await link.close()
  await provider.close()
})

const hello: Respond = async (request, response) => {
  for await (const _ of request);
  response.writeHead(200, { 'content-type': 'application/json', connection: 'x-hop', 'x-hop': '1' })
  response.end('{"hello":true}')
}

interface Setting {
  readonly respond?: Respond
  /** What is proven at first, and what each further verification proves. */
  readonly proven?: readonly (string | undefined)[]
  readonly baseUrl?: (port: number) => string
  readonly webPki?: boolean
  readonly connectMs?: number
}

async function set(setting: Setting = {}): Promise<CountedProofs> {
  provider = await startRecordingProvider(setting.respond ?? hello, keys[0])
  const baseUrl = (setting.baseUrl ?? ((port) => `https://127.0.0.1:${port}/v1`))(provider.port)
  const spkis = setting.proven ?? [keys[0].spkiSha256]
  const reach = { provider: 'nova', baseUrl, apiKey: 'key', webPki: setting.webPki ?? false }
  const proofs = proofsOf(reach, spkis)
  egress = createProviderEgress({
    proofs,
    connectMs: () => setting.connectMs ?? 2000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
  link = await startEgressLink(egress)
  return proofs
}

const refusal = (code: string, message: string) => JSON.stringify({ error: { code, message } })

describe('a pinned call', () => {
  it('carries request and answer, names the evidence and strips headers of one hop', async () => {
    await set()
    const answer = await link.post('nova', PROMPT)
    expect(answer).toMatchObject({ status: 200, text: '{"hello":true}' })
    expect(answer.headers['x-cmr-evidence-sha256']).toBe('e0'.repeat(32))
    expect(answer.headers).not.toHaveProperty('x-hop')
    expect(provider.received()).toMatch(/^POST \/v1\/chat\/completions HTTP\/1\.1\r\n/)
    expect(provider.received().toLowerCase()).toContain('accept-encoding: identity')
    expect(provider.received()).toContain(`\r\nhost: 127.0.0.1:${provider.port}\r\n`)
    expect(provider.received()).toContain(PROMPT)
  })

  it('uses one connection again for the same proof, and a new one for another', async () => {
    const proofs = await set({ proven: [keys[0].spkiSha256, keys[0].spkiSha256] })
    await link.post('nova', PROMPT)
    await link.post('nova', PROMPT)
    expect(provider.connections()).toBe(1)
    await proofs.reverify('nova', evidenceFor(''))
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-evidence-sha256']).toBe('e1'.repeat(32))
    expect(provider.connections()).toBe(2)
  })

  it.each(['', '/v1/models'])('is made below the path %j of a base URL', async (base) => {
    await set({ baseUrl: (port) => `https://127.0.0.1:${port}${base}` })
    await link.post('nova', PROMPT)
    expect(provider.received()).toContain(`POST ${base}/chat/completions HTTP/1.1\r\n`)
    expect(provider.received()).toContain(`\r\nhost: 127.0.0.1:${provider.port}\r\n`)
  })

  it('does not let a provider speak in the name of the daemon', async () => {
    await set({
      respond: (_request, response) => {
        response.writeHead(200, {
          'x-cmr-egress-error': 'provider_unproven',
          'x-cmr-evidence-sha256': 'ff'.repeat(32),
        })
        response.end('ok')
      },
    })
    const { headers } = await link.post('nova', PROMPT)
    expect(headers).not.toHaveProperty('x-cmr-egress-error')
    expect(headers['x-cmr-evidence-sha256']).toBe('e0'.repeat(32))
  })

  it('gives a small document of the provider over the same pin, with its key', async () => {
    await set()
    const ask = { path: '/signature/x', maxBytes: 100, signal: AbortSignal.timeout(2000) }
    const reply = await egress.get('nova', ask)
    expect(reply?.status).toBe(200)
    expect(provider.received()).toContain('authorization: Bearer key')
    expect(await egress.get('nova', { ...ask, maxBytes: 3 })).toBeUndefined()
  })
})

describe('a peer with another key', () => {
  it('gets not a byte when it cannot prove that key', async () => {
    const proofs = await set({ proven: [keys[1].spkiSha256, undefined] })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(503)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(answer.text).toBe(refusal('provider_unproven', 'the provider has no verified evidence'))
    expect(provider.received()).toBe('')
    expect(proofs.reverified).toBe(1)
  })

  it('is called once the renewed evidence vouches for that key', async () => {
    const proofs = await set({ proven: [keys[1].spkiSha256, keys[0].spkiSha256] })
    const answer = await link.post('nova', Readable.from([PROMPT]))
    expect(answer.status).toBe(200)
    expect(answer.headers['x-cmr-evidence-sha256']).toBe('e1'.repeat(32))
    expect(proofs.reverified).toBe(1)
  })

  it('is not believed when it shows a third key', async () => {
    const proofs = await set({ proven: [keys[1].spkiSha256, keys[2].spkiSha256] })
    const answer = await link.post('nova', PROMPT)
    expect(answer.text).toBe(refusal('provider_unproven', 'the provider has no verified evidence'))
    expect(proofs).toMatchObject({ reverified: 1, distrusted: 1 })
    expect(provider.received()).toBe('')
  })

  it('is noticed in mid-life, at the next connection', async () => {
    const proofs = await set({ proven: [keys[0].spkiSha256, undefined] })
    await link.post('nova', 'first')
    provider.changeKey(keys[1])
    await provider.cut()
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
    expect(proofs.reverified).toBe(1)
  })
})

describe('a call that cannot be made', () => {
  it.each([
    ['vega', 400, 'invalid_request', 'this provider has no attestation'],
    ['nobody', 404, 'not_found', 'no provider of that name'],
  ])('is refused for %s', async (name, status, code, message) => {
    await set()
    const answer = await link.post(name, PROMPT)
    expect(answer).toMatchObject({ status, text: refusal(code, message) })
    expect(answer.headers['x-cmr-egress-error']).toBe(code)
  })

  it('is refused at an address without TLS', async () => {
    await set({ baseUrl: (port) => `http://127.0.0.1:${port}/v1` })
    const answer = await link.post('nova', PROMPT)
    expect(answer.text).toBe(refusal('provider_unproven', 'the provider has no verified evidence'))
    expect(provider.connections()).toBe(0)
  })

  it('distinguishes a provider that is not reachable from one that is not proven', async () => {
    await set()
    await provider.close()
    const answer = await link.post('nova', PROMPT)
    expect(answer).toMatchObject({
      status: 502,
      text: refusal('provider_unreachable', 'the provider cannot be reached'),
    })
  })

  it('ends a handshake that takes too long', async () => {
    const silent = createServer()
    const port = await listen(silent)
    await set({ connectMs: 50, baseUrl: () => `https://127.0.0.1:${port}/v1` })
    const answer = await link.post('nova', PROMPT)
    expect(answer).toMatchObject({
      status: 504,
      text: refusal('connect_timeout', 'the provider took too long to connect'),
    })
    silent.close()
  })
})

describe('what the caller requires of the provider', () => {
  const post = (constraints: string) => link.post('nova', PROMPT, { 'x-cmr-require': constraints })
  const unmet = (name: string) =>
    refusal('constraints_unmet', `the provider does not meet \`${name}\``)

  it('is checked against the evidence of the connection, and never sent to the provider', async () => {
    await set()
    const evidence = `evidence_sha256=${'e0'.repeat(32)}`
    const answer = await post(`min=simulated; providers=nova,vega; ${evidence}`)
    expect(answer).toMatchObject({ status: 200, text: '{"hello":true}' })
    expect(provider.received().toLowerCase()).not.toMatch(/x-cmr|require|simulated/)
  })

  it.each([
    ['min=hardware', 'min'],
    ['providers=vega', 'providers'],
    [`evidence_sha256=${'e1'.repeat(32)}`, 'evidence_sha256'],
  ])('%s is refused before a byte of the request leaves', async (constraints, name) => {
    await set()
    const answer = await post(constraints)
    expect(answer).toMatchObject({ status: 412, text: unmet(name) })
    expect(answer.headers['x-cmr-egress-error']).toBe('constraints_unmet')
    expect(provider.received()).toBe('')
  })

  it('holds for evidence that replaced what was pinned when the call began', async () => {
    await set({ proven: [keys[1].spkiSha256, keys[0].spkiSha256] })
    const answer = await post(`evidence_sha256=${'e0'.repeat(32)}`)
    expect(answer).toMatchObject({ status: 412, text: unmet('evidence_sha256') })
    expect(provider.received()).toBe('')
  })

  it.each(['', 'min=strongest', 'min=hardware, min=none'])(
    'that cannot be read (%j) is refused',
    async (constraints) => {
      await set()
      const answer = await post(constraints)
      const text = refusal('invalid_request', 'the constraints are malformed')
      expect(answer).toMatchObject({ status: 400, text })
      expect(provider.connections()).toBe(0)
    },
  )
})

describe('a stream', () => {
  it('reaches the worker piece by piece', async () => {
    const second = Promise.withResolvers<void>()
    await set({
      respond: async (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: 1\n\n')
        await second.promise
        response.end('data: 2\n\n')
      },
    })
    const answer = await link.open('nova', PROMPT)
    const reader = answer[Symbol.asyncIterator]()
    expect(String((await reader.next()).value)).toBe('data: 1\n\n')
    second.resolve()
    expect(String((await reader.next()).value)).toBe('data: 2\n\n')
  })

  it('that the provider breaks off is broken for the worker', async () => {
    await set({
      respond: (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: 1\n\n', () => response.destroy())
      },
    })
    const answer = await link.open('nova', PROMPT)
    const read = async () => {
      for await (const _ of answer);
    }
    await expect(read()).rejects.toThrow('aborted')
  })

  it('of a declared length is broken for the worker after its head, where the provider breaks it off', async () => {
    await set({
      respond: (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
        response.write('{"half":', () => response.destroy())
      },
    })
    const answer = await link.open('nova', PROMPT)
    expect(answer.statusCode).toBe(200)
    const parts: string[] = []
    const read = async () => {
      for await (const part of answer) parts.push(String(part))
    }
    await expect(read()).rejects.toThrow('aborted')
    expect(parts.join('')).toBe('{"half":')
  })

  it('of events is relayed as it comes although its length is declared', async () => {
    const second = Promise.withResolvers<void>()
    await set({
      respond: async (_request, response) => {
        const headers = { 'content-type': 'text/event-stream', 'content-length': 18 }
        response.writeHead(200, headers)
        response.write('data: 1\n\n')
        await second.promise
        response.end('data: 2\n\n')
      },
    })
    const answer = await link.open('nova', PROMPT)
    const reader = answer[Symbol.asyncIterator]()
    expect(String((await reader.next()).value)).toBe('data: 1\n\n')
    second.resolve()
    expect(String((await reader.next()).value)).toBe('data: 2\n\n')
  })

  it('that the worker leaves is ended at the provider', async () => {
    const gone = Promise.withResolvers<void>()
    await set({
      respond: (_request, response) => {
        response.on('close', () => gone.resolve())
        response.writeHead(200)
        response.write('data: 1\n\n')
      },
    })
    const abort = new AbortController()
    const answer = await link.open('nova', PROMPT, abort.signal)
    answer.on('error', () => {})
    abort.abort()
    await expect(gone.promise).resolves.toBeUndefined()
  })

  it.each([
    ['a stream of events', 'text/event-stream'],
    ['another answer', 'application/octet-stream'],
  ])('is held back at the provider while the worker does not read: %s', async (_, contentType) => {
    let written = 0
    const over = new AbortController()
    await set({
      respond: async (_request, response) => {
        response.writeHead(200, { 'content-type': contentType })
        const block = Buffer.alloc(65_536)
        const fill = () => {
          let taken = true
          while (taken && !over.signal.aborted) {
            taken = response.write(block)
            written += block.length
          }
        }
        response.on('drain', fill)
        fill()
      },
    })
    const answer = await link.open('nova', PROMPT)
    answer.on('error', () => {})
    expect(await standstill(() => written)).toBeLessThan(64 * 1024 * 1024)
    over.abort()
    answer.destroy()
  })

  it('of a request is held back while the provider does not read', async () => {
    await set({ respond: () => {} })
    let produced = 0
    const body = Readable.from(
      (function* blocks() {
        for (; produced < 128 * 1024 * 1024; produced += 65_536) yield Buffer.alloc(65_536)
      })(),
    )
    const abort = new AbortController()
    link.open('nova', body, abort.signal).catch(() => {})
    expect(await standstill(() => produced)).toBeLessThan(64 * 1024 * 1024)
    abort.abort()
    body.destroy()
  })
})
