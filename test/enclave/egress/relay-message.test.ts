import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { MessageCaller } from '../../../src/enclave/link-server/message-caller.ts'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { SMALL_BODY_BYTES, type AnswerHead } from '../../../src/protocol/link-messages.ts'
import {
  sendParts as send,
  startByteProvider,
  type ByteProvider,
} from '../../support/byte-provider.ts'
import { provenAlways } from '../../support/proven-always.ts'

/** What a provider sends byte by byte, as a message. That over HTTP is in `exchange.test.ts`. */

let provider: ByteProvider
let egress: Egress
/** One that has no memory left. */
let fullEgress: Egress

beforeAll(async () => {
  const identity = await makeTlsIdentity([], new Date())
  provider = await startByteProvider(identity, () => {})
  const deps = {
    proofs: provenAlways('nova', `https://127.0.0.1:${provider.port}/v1`, identity.spkiSha256),
    connectMs: () => 10_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  }
  egress = createProviderEgress(deps)
  fullEgress = createProviderEgress({ ...deps, memory: new EventMemory(0) })
})
afterAll(async () => {
  egress.close()
  fullEgress.close()
  await provider.close()
})

type Told =
  | { readonly how: 'answer' | 'broken'; readonly head: AnswerHead; readonly text: string }
  | { readonly how: 'waiting' }

/** @throws LinkError */
async function call(over = egress): Promise<Told> {
  const { promise, resolve } = Promise.withResolvers<Told>()
  const caller: MessageCaller = {
    hasDisconnected: false,
    onceDisconnected: () => {},
    answer: (head, body) => resolve({ how: 'answer', head, text: Buffer.from(body).toString() }),
    breakOff: (head, part) => resolve({ how: 'broken', head, text: Buffer.from(part).toString() }),
    wait: () => resolve({ how: 'waiting' }),
  }
  const body = Buffer.from('{}')
  await over.carryMessage({ provider: 'nova', path: '/chat', headers: {}, body, caller })
  return promise
}

const HEAD = 'HTTP/1.1 200 OK\r\nx-of: nova\r\n'
const one = (body: string) => `${HEAD}content-length: ${body.length}\r\n\r\n${body}`

describe('an answer as a message', () => {
  it.each([
    ['of a declared length', one('{"a":1}')],
    ['after interim ones', `HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n${one('{"a":1}')}`],
  ])('%s means the same wherever it is split', { timeout: 60_000 }, async (_name, bytes) => {
    for (let at = 1; at < bytes.length; at++) {
      provider.script = send(bytes.slice(0, at), bytes.slice(at))
      const told = await call()
      expect([at, told]).toMatchObject([
        at,
        { how: 'answer', head: { status: 200, headers: { 'x-of': 'nova' } }, text: '{"a":1}' },
      ])
    }
  })

  it('ends where its declared length ends, and what is behind it is no answer to the next call', async () => {
    provider.script = send(`${one('a')}more`)
    expect(await call()).toMatchObject({ how: 'answer', text: 'a' })
    provider.script = send(`${one('b')}${one('c')}`)
    expect(await call()).toMatchObject({ how: 'answer', text: 'b' })
    provider.script = send(one('d'))
    expect(await call()).toMatchObject({ how: 'answer', text: 'd' })
  })

  it('that is shorter than its declared length is broken', async () => {
    provider.script = (tls) => void tls.end(`${HEAD}content-length: 9\r\n\r\n{"a":1}`)
    expect(await call()).toMatchObject({ how: 'broken', head: { status: 200 }, text: '{"a":1}' })
  })

  it('of more than is small waits', async () => {
    const body = 'x'.repeat(SMALL_BODY_BYTES + 1)
    provider.script = send(one(body))
    expect(await call()).toEqual({ how: 'waiting' })
    provider.script = send(one(body.slice(1)))
    expect(await call()).toMatchObject({ how: 'answer', text: body.slice(1) })
  })

  it('waits where no memory is left to gather it', async () => {
    provider.script = send(one('{"a":1}'))
    expect(await call(fullEgress)).toEqual({ how: 'waiting' })
    expect(await call()).toMatchObject({ how: 'answer', text: '{"a":1}' })
  })

  const chunked = (...chunks: readonly string[]) =>
    [
      `${HEAD}transfer-encoding: chunked\r\n\r\n`,
      ...[...chunks, ''].map((text) => `${text.length.toString(16)}\r\n${text}\r\n`),
    ].join('')

  it('in chunks becomes one of a declared length, and ends with them', async () => {
    provider.script = send(`${chunked('{"a"', ':1}')}${one('more')}`)
    expect(await call()).toMatchObject({
      how: 'answer',
      head: { status: 200, headers: { 'x-of': 'nova', 'content-length': '7' } },
      text: '{"a":1}',
    })
    provider.script = send(chunked())
    expect(await call()).toMatchObject({ text: '', head: { headers: { 'content-length': '0' } } })
  })

  it('in chunks that stop before their end is not taken for a whole one', async () => {
    const bytes = chunked('{"a"', ':1}')
    for (let at = bytes.indexOf('\r\n\r\n') + 4; at < bytes.length; at++) {
      provider.script = (tls) => void tls.end(bytes.slice(0, at))
      const told = await call()
      // Where its end is seen only after 50 ms, it waits, and breaks off then.
      expect([at, told.how]).not.toEqual([at, 'answer'])
      expect(told).not.toHaveProperty('head.headers.content-length')
    }
  })

  const chunk = 'x'.repeat(SMALL_BODY_BYTES)
  it.each([
    [
      'a length and chunks',
      `${HEAD}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n10000\r\n${chunk}\r\n1\r\na\r\n0\r\n\r\n`,
      'provider_malformed',
    ],
    [
      'chunks and a length',
      `${HEAD}transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n10000\r\n${chunk}\r\n1\r\na\r\n0\r\n\r\n`,
      'provider_malformed',
    ],
    [
      'two lengths',
      `${HEAD}content-length: 1\r\ncontent-length: 7\r\n\r\n{"a":1}`,
      'provider_malformed',
    ],
    ['bytes that are not HTTP', 'nonsense\r\n\r\n', 'provider_malformed'],
    ['headers of 17 KB', `${HEAD}x: ${'v'.repeat(17_000)}\r\n${one('a')}`, 'provider_malformed'],
    ['an invalid status', `HTTP/1.1 700 X\r\ncontent-length: 1\r\n\r\na`, 'provider_malformed'],
    [
      'an interim answer that is never asked for',
      `HTTP/1.1 100 Continue\r\n\r\n${one('a')}`,
      'provider_malformed',
    ],
    [
      'an upgrade',
      'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'provider_malformed',
    ],
  ])('is none with %s', async (_name, bytes, code) => {
    provider.script = send(bytes)
    await expect(call()).rejects.toMatchObject({ code })
  })

  it.each([
    ['its status line', 'HTTP/1.1 200'],
    ['its headers', `${HEAD}x: v`],
  ])('is none where the connection ends in %s, as where nothing came', async (_part, bytes) => {
    provider.script = (tls) => void tls.end(bytes)
    await expect(call()).rejects.toMatchObject({ code: 'provider_unreachable' })
  })

  it('has none of the headers that are between the daemon and its worker', async () => {
    provider.script = send(
      `${HEAD}x-cmr-egress-error: not_found\r\nx-cmr-chunks: written\r\nx-cmr-evidence-sha256: 00\r\nconnection: x-a\r\nx-a: 1\r\ncontent-length: 1\r\n\r\na`,
    )
    const told = await call()
    if (told.how !== 'answer') throw new Error('no answer')
    const { 'x-cmr-evidence-sha256': evidence, ...others } = told.head.headers
    expect(evidence).toMatch(/^[0-9a-f]{64}$/)
    expect(others).toEqual({ 'x-of': 'nova', 'content-length': '1' })
  })
})
