import { createHash, randomUUID } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { MessageCaller } from '../../../src/enclave/link-server/message-caller.ts'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import type { AnswerHead } from '../../../src/protocol/link-messages.ts'
import { printStreamSpec, type StreamSpec } from '../../../src/protocol/stream-record.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { API_FORMATS } from '../../support/api-formats.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { OPTIONS } from '../../support/golden-streams.ts'
import { provenAlways } from '../../support/proven-always.ts'
import {
  startRecordingProvider,
  type RecordingProvider,
  type Respond,
} from '../../support/recording-provider.ts'
import { openChunkClient, readAll, type ChunkClient } from './chunk-client.ts'

/** Orders for chunks that are to come over the worker's connection for them. */

const CONNECTION = '00000000-0000-4000-8000-000000000001'
const OTHER = '00000000-0000-4000-8000-000000000002'

let key: DaemonTls
const closing: (() => Promise<void> | void)[] = []

beforeAll(async () => {
  key = await makeTlsIdentity([], new Date())
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

interface Set {
  readonly provider: RecordingProvider
  readonly egress: Egress
  readonly link: EgressLink
  readonly client: ChunkClient
}

async function set(respond: Respond, maxStreams = 1_000): Promise<Set> {
  const provider = await startRecordingProvider(respond, key)
  const egress = createProviderEgress({
    proofs: provenAlways('nova', `https://127.0.0.1:${provider.port}/v1`, key.spkiSha256),
    connectMs: () => 30_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams,
    now: Date.now,
    log: () => {},
  })
  const link = await startEgressLink(egress)
  const client = await openChunkClient((socket) => egress.sendChunks(CONNECTION, socket))
  closing.push(
    () => provider.close(),
    () => link.close(),
    () => client.close(),
    () => egress.close(),
  )
  return { provider, egress, link, client }
}

const TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
const EVENTS = { 'content-type': 'text/event-stream' }

const answering =
  (body: string, status = 200, headers: OutgoingHttpHeaders = EVENTS): Respond =>
  async (incoming, response) => {
    for await (const _ of incoming);
    response.writeHead(status, headers).end(body)
  }

const specOf = (given: Partial<StreamSpec> = {}): StreamSpec => ({
  ...STREAM_SPEC,
  stream: randomUUID(),
  to: { connection: CONNECTION, stream: 5 },
  ...given,
})

/** How the daemon answered a call: over HTTP with all of the body, or with a message, or by letting it wait. */
interface Told {
  readonly status: number | 'waiting' | 'broken'
  readonly chunks: unknown
  readonly text: string
  readonly head?: AnswerHead
}

type Ask = (to: Set, spec: StreamSpec, body?: Uint8Array) => Promise<Told>

const overHttp: Ask = async ({ link }, spec, body = Buffer.from('{"a":1}')) => {
  const headers = { 'x-cmr-chunks': printStreamSpec(spec) }
  const answer = await link.post('nova', Buffer.from(body).toString(), headers)
  return { status: answer.status, chunks: answer.headers['x-cmr-chunks'], text: answer.text }
}

const asMessage: Ask = async ({ egress }, spec, body = Buffer.from('{"a":1}')) => {
  const told = Promise.withResolvers<Told>()
  const caller: MessageCaller = {
    hasDisconnected: false,
    onceDisconnected: () => {},
    answer: (head, bytes) =>
      told.resolve({
        status: head.status,
        chunks: head.headers['x-cmr-chunks'],
        text: Buffer.from(bytes).toString(),
        head,
      }),
    breakOff: () => told.resolve({ status: 'broken', chunks: undefined, text: '' }),
    wait: () => told.resolve({ status: 'waiting', chunks: undefined, text: '' }),
  }
  const headers = { 'content-type': 'application/json', 'x-cmr-chunks': printStreamSpec(spec) }
  await egress.carryMessage({ provider: 'nova', path: '/chat/completions', headers, body, caller })
  return told.promise
}

/** The refusal of a call in either way. */
async function refusalOf(ask: Promise<Told>): Promise<unknown> {
  try {
    const { text } = await ask
    return JSON.parse(text).error
  } catch (error) {
    if (error instanceof Error && 'code' in error) {
      return { code: error.code, message: error.message }
    }
    throw error
  }
}

describe.each([
  ['over HTTP', overHttp],
  ['as a message', asMessage],
] as const)('a stream specification %s for chunks on a connection', (how, ask) => {
  it('is answered at once, and the chunks and the record come on the connection', async () => {
    const given = await set(answering(TEXT + STOP))
    const spec = specOf()
    const told = await ask(given, spec)
    expect([told.status, told.chunks, told.text]).toEqual([200, 'sent', ''])
    const { bytes, record } = await readAll(given.client, 5)
    expect(bytes.toString()).toContain('"Hello"')
    expect(record).toMatchObject({ ending: { kind: 'complete' }, finish_reason: 'stop' })
    expect(record?.client_sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(record?.provider_sha256).toBe(
      createHash('sha256')
        .update(TEXT + STOP)
        .digest('hex'),
    )
    expect(given.egress.endStream(spec.stream)).toEqual(record)
    expect(given.provider.received()).not.toContain('x-cmr')
  })

  it('sends the provider no more than its request where other bytes precede that', async () => {
    const given = await set(answering(TEXT + STOP))
    const requested = API_FORMATS['responses']?.format.chunkFormat(OPTIONS)
    if (requested?.preamble === undefined) throw new Error('something precedes the request')
    const body = Buffer.concat([requested.preamble, Buffer.from('{"a":1}')])
    const told = await ask(given, specOf({ format: requested.format }), body)
    expect([told.status, told.chunks]).toEqual([200, 'sent'])
    const { bytes } = await readAll(given.client, 5)
    expect(bytes.toString()).toContain('event: response.output_text.delta')
    expect(given.provider.received().split('\r\n\r\n')[1]).toBe('{"a":1}')
    expect(given.provider.received().toLowerCase()).toContain('content-length: 7\r\n')
  })

  it.each([
    ['is shorter than that', '{}', 3],
    ['begins with something else', '{}{"a":1}', 2],
  ])('is refused where its body %s', async (_what, body, length) => {
    const given = await set(answering(TEXT + STOP))
    const format = { door: 'responses', encrypted_content: false, ahead_bytes: length } as const
    const refused = await refusalOf(ask(given, specOf({ format }), Buffer.from(body)))
    expect(refused).toMatchObject({ code: 'invalid_request' })
    expect(given.provider.received()).toBe('')
  })

  it('is refused where its name is in use, and the provider’s answer is let go', async () => {
    const given = await set((incoming, response) => {
      incoming.resume()
      response.writeHead(200, EVENTS).write(TEXT)
    })
    const spec = specOf()
    await ask(given, spec)
    const to = { connection: CONNECTION, stream: 6 }
    const refused = await refusalOf(ask(given, { ...spec, to }))
    expect(refused).toEqual({ code: 'invalid_request', message: 'the stream is not new' })
    // The number is free: another stream may have it.
    expect((await ask(given, specOf({ to }))).chunks).toBe('sent')
    expect(given.egress.endStream(spec.stream)).toMatchObject({ ending: { kind: 'stopped' } })
  })

  it('is one for another way where the connection is not known, or the number in use', async () => {
    let calls = 0
    const given = await set((incoming, response) => {
      incoming.resume()
      response.writeHead(200, EVENTS)
      calls += 1
      if (calls === 1) response.write(TEXT)
      else response.end(TEXT + STOP)
    })
    const first = specOf()
    expect((await ask(given, first)).chunks).toBe('sent')
    const others = [specOf(), specOf({ to: { connection: OTHER, stream: 1 } })]
    const expected = how === 'over HTTP' ? [200, 'written'] : ['waiting', undefined]
    for (const spec of others) {
      const { status, chunks } = await ask(given, spec)
      expect([status, chunks]).toEqual(expected)
      // A stream that the worker writes itself has no record here.
      expect(given.egress.endStream(spec.stream) === undefined).toBe(how !== 'over HTTP')
    }
    expect(given.egress.endStream(first.stream)).toMatchObject({ ending: { kind: 'stopped' } })
  })

  it('is one for the provider’s bytes where there is no room for its record', async () => {
    const given = await set(answering(TEXT + STOP), 0)
    const spec = specOf()
    const { status, chunks, text } = await ask(given, spec)
    const expected =
      how === 'over HTTP' ? [200, undefined, TEXT + STOP] : ['waiting', undefined, '']
    expect([status, chunks, text]).toEqual(expected)
    expect(given.egress.endStream(spec.stream)).toBeUndefined()
  })

  it.each([
    ['refuses', 429, { 'content-type': 'application/json', 'content-length': 4 }, 429],
    ['compresses', 200, { ...EVENTS, 'content-encoding': 'gzip' }, 200],
  ])('passes on the answer of a provider that %s', async (_what, status, headers, expected) => {
    const given = await set(answering('null', status, headers))
    const spec = specOf()
    const told = await ask(given, spec)
    const waits = how !== 'over HTTP' && status === 200
    expect(told).toMatchObject(
      waits
        ? { status: 'waiting', chunks: undefined }
        : { status: expected, chunks: undefined, text: 'null' },
    )
    expect(given.egress.endStream(spec.stream)).toBeUndefined()
  })

  it('ends as stopped with the connection, and its provider is let go', async () => {
    const left = Promise.withResolvers<true>()
    const given = await set((incoming, response) => {
      incoming.resume()
      response.once('close', () => left.resolve(true))
      response.writeHead(200, EVENTS).write(TEXT)
    })
    const spec = specOf()
    await ask(given, spec)
    await given.client.next()
    given.client.socket.terminate()
    expect(await left.promise).toBe(true)
    expect(given.egress.endStream(spec.stream)).toMatchObject({
      ending: { kind: 'stopped' },
      counts: { uncounted_text_bytes: 5 },
    })
  })

  it('is refused where it is malformed', async () => {
    const given = await set(answering(TEXT + STOP))
    const to = { connection: 'one', stream: 1 }
    for (const wrong of [to, { ...to, connection: CONNECTION, stream: 2 ** 32 }]) {
      const refused = await refusalOf(ask(given, specOf({ to: wrong })))
      expect(refused).toEqual({
        code: 'invalid_request',
        message: 'the specification of the stream is malformed',
      })
    }
    expect(given.provider.received()).toBe('')
  })
})

it('the answer as a message names the evidence of its connection', async () => {
  const given = await set(answering(TEXT + STOP))
  const { head } = await asMessage(given, specOf())
  expect(head?.headers).toEqual({
    'content-type': 'text/event-stream',
    'x-cmr-chunks': 'sent',
    'x-cmr-evidence-sha256': 'e0'.repeat(32),
  })
})

it('a stream of many windows comes whole to a worker that takes it chunk by chunk', async () => {
  const event = `data: {"choices":[{"index":0,"delta":{"content":"${'word '.repeat(200)}"}}]}\n\n`
  const bytes = event.repeat(2_048)
  const given = await set(answering(bytes + STOP))
  const spec = specOf({ idle_ms: 60_000 })
  await overHttp(given, spec)
  const { bytes: chunks, record } = await readAll(given.client, 5)
  expect(chunks.toString().split('"content":"word').length - 1).toBe(2_048)
  expect(record?.provider_sha256).toBe(
    createHash('sha256')
      .update(bytes + STOP)
      .digest('hex'),
  )
  expect(record?.client_sha256).toBe(createHash('sha256').update(chunks).digest('hex'))
})
