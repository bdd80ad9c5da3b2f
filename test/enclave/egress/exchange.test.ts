import { createServer as createPlainServer } from 'node:net'
import { Readable } from 'node:stream'
import { createServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { Egress, EgressCall } from '../../../src/enclave/open-egress.ts'
import {
  sendParts as send,
  startByteProvider,
  type ByteProvider,
} from '../../support/byte-provider.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { listen } from '../../support/listen.ts'
import { provenAlways } from '../../support/proven-always.ts'

/** Patience with what must happen, ms. */
const PATIENT = { timeout: 30_000 }

let provider: ByteProvider
let egress: Egress
let link: EgressLink

function egressTo(port: number, spkiSha256: string, connectMs = 10_000): Egress {
  return createProviderEgress({
    proofs: provenAlways('nova', `https://127.0.0.1:${port}/v1`, spkiSha256),
    connectMs: () => connectMs,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
}

beforeAll(async () => {
  const identity = await makeTlsIdentity([], new Date())
  provider = await startByteProvider(identity, send())
  egress = egressTo(provider.port, identity.spkiSha256)
  link = await startEgressLink(egress)
})
afterAll(async () => {
  egress.close()
  await link.close()
  await provider.close()
})

const HEAD = 'HTTP/1.1 200 OK\r\nx-of: nova\r\n'

describe('an answer', () => {
  it.each([
    ['of a declared length', `${HEAD}content-length: 7\r\n\r\n{"a":1}`],
    [
      'in chunks',
      `${HEAD}transfer-encoding: chunked\r\n\r\n3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\nt: u\r\n\r\n`,
    ],
    [
      'after interim ones',
      `HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n${HEAD}content-length: 7\r\n\r\n{"a":1}`,
    ],
  ])('%s means the same wherever it is split', { timeout: 60_000 }, async (_name, bytes) => {
    for (let at = 1; at < bytes.length; at++) {
      provider.script = send(bytes.slice(0, at), bytes.slice(at))
      const { status, headers, text } = await link.post('nova', 'a prompt')
      expect([at, status, headers['x-of'], text]).toEqual([at, 200, 'nova', '{"a":1}'])
    }
  })

  it('that ends with its connection is whole', async () => {
    provider.script = (tls) => void tls.end(`${HEAD}\r\n{"a":1}`)
    expect(await link.post('nova', 'a prompt')).toMatchObject({ status: 200, text: '{"a":1}' })
  })

  it('behind the one that was asked for is no answer to the next call', async () => {
    const one = (body: string) => `${HEAD}content-length: 1\r\n\r\n${body}`
    provider.script = send(`${one('a')}${one('b')}`)
    expect((await link.post('nova', 'a prompt')).text).toBe('a')
    provider.script = send(one('c'))
    expect((await link.post('nova', 'a prompt')).text).toBe('c')
  })

  it.each([
    ['an interim answer that is never asked for', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['an upgrade', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['bytes that are not HTTP', 'nonsense\r\n\r\n'],
    ['headers of more than 16 KiB', `${HEAD}x: ${'v'.repeat(17_000)}\r\n`],
    ['two lengths', `${HEAD}content-length: 1\r\ncontent-length: 7\r\n\r\n`],
  ])('is none: %s', async (_name, bytes) => {
    provider.script = send(bytes, `${HEAD}content-length: 1\r\n\r\na`)
    const { status, text } = await link.post('nova', 'a prompt')
    const error = {
      code: 'provider_malformed',
      message: 'the provider gave an invalid answer',
    }
    expect([status, JSON.parse(text)]).toEqual([502, { error }])
  })

  it('with the same header in several lines is passed on with all of them', async () => {
    provider.script = send(
      'HTTP/1.1 200 OK\r\nx-of: nova\r\nx-of: vega\r\nconnection: x-a\r\nconnection: x-b\r\nx-b: 1\r\ncontent-length: 0\r\n\r\n',
    )
    const { headers } = await link.post('nova', 'a prompt')
    expect(headers['x-of']).toBe('nova, vega')
    expect(headers).not.toHaveProperty('x-b')
  })
})

describe('a large request', () => {
  function largeBody(): Readable {
    return Readable.from(Array.from({ length: 128 }, () => Buffer.alloc(65_536)))
  }

  it(
    'that is answered before it was read has its answer, and the next call has one too',
    PATIENT,
    async () => {
      const identity = await makeTlsIdentity([], new Date())
      const server = createServer({ cert: identity.certPem, key: identity.keyPem }, (tls) => {
        tls.on('error', () => {})
        tls.once('data', () => {
          tls.pause()
          tls.write('HTTP/1.1 413 Too Large\r\ncontent-length: 1\r\n\r\na')
        })
      })
      const port = await listen(server)
      const other = egressTo(port, identity.spkiSha256)
      const otherLink = await startEgressLink(other)
      for (const body of [largeBody(), 'a prompt']) {
        const { status, text } = await otherLink.post('nova', body, { connection: 'keep-alive' })
        expect([status, text]).toEqual([413, 'a'])
      }
      other.close()
      await otherLink.close()
      server.close()
    },
  )

  it('that breaks off while the connection is opened does no harm', PATIENT, async () => {
    const reached = Promise.withResolvers<void>()
    const silent = createPlainServer((socket) => {
      socket.on('error', () => {})
      reached.resolve()
    })
    const port = await listen(silent)
    const other = egressTo(port, 'ab'.repeat(32), 1_000)
    const carried = Promise.withResolvers<unknown>()
    const watched = {
      ...other,
      carry: (call: EgressCall) => other.carry(call).then(carried.resolve, carried.resolve),
    }
    const otherLink = await startEgressLink(watched)
    const abort = new AbortController()
    otherLink.open('nova', largeBody(), abort.signal).catch(() => {})
    await reached.promise
    abort.abort()
    expect(await carried.promise).toMatchObject({ code: 'connect_timeout' })
    other.close()
    await otherLink.close()
    silent.close()
  })
})

describe('a connection', () => {
  it('is closed when the worker leaves before there is an answer', async () => {
    const closed = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    provider.script = (tls) => {
      tls.once('close', () => closed.resolve())
      asked.resolve()
    }
    const abort = new AbortController()
    link.open('nova', 'a prompt', abort.signal).catch(() => {})
    await asked.promise
    abort.abort()
    await expect(closed.promise).resolves.toBeUndefined()
  })

  it('is kept for the next call, but no more than 64 of them', PATIENT, async () => {
    egress.close()
    const open = new Set<unknown>()
    const waiting: (() => void)[] = []
    provider.script = (tls) => {
      open.add(tls)
      tls.once('close', () => open.delete(tls))
      waiting.push(() => void tls.write(`${HEAD}content-length: 1\r\n\r\na`))
      if (waiting.length === 70) for (const answer of waiting) answer()
    }
    const calls = Array.from({ length: 70 }, () => link.post('nova', 'a prompt'))
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200)
    await expect.poll(() => open.size, PATIENT).toBe(64)
    const used: unknown[] = []
    provider.script = (tls) => {
      used.push(tls)
      tls.write(`${HEAD}content-length: 1\r\n\r\na`)
    }
    expect((await link.post('nova', 'a prompt')).status).toBe(200)
    expect([...open]).toEqual(expect.arrayContaining(used))
  })
})
