import { once } from 'node:events'
import { createServer, request, type OutgoingHttpHeaders, type Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { MessageCaller } from '../../../src/enclave/link-server/message-caller.ts'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import type {
  WholeAnswerCall,
  WriteWholeAnswer,
  WrittenWholeAnswer,
} from '../../../src/enclave/egress/whole-answer-call.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { refusal } from '../../../src/enclave/link/answer.ts'
import { sendReply } from '../../../src/enclave/link-server/reply.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { SMALL_BODY_BYTES, type AnswerHead } from '../../../src/protocol/link-messages.ts'
import { listen } from '../../support/listen.ts'
import { proofsOf } from '../../support/proven-channel.ts'
import {
  startRecordingProvider,
  type RecordingProvider,
  type Respond,
} from '../../support/recording-provider.ts'
import { WHOLE_ANSWER_RECORD, wholeAnswerSpec } from '../../support/whole-answer-spec.ts'
import { poolHasLooked } from '../../support/pool-look.ts'

let key: DaemonTls
let provider: RecordingProvider
let egress: Egress
/** Where answers that wait are fetched: its path is the id. */
let server: Server
let port = 0

beforeAll(async () => {
  key = await makeTlsIdentity([], new Date())
})
afterEach(async () => {
  egress.close()
  server.close()
  server.closeAllConnections()
  await provider.close()
})

async function set(
  respond: Respond,
  spki = key.spkiSha256,
  writeWholeAnswer?: WriteWholeAnswer,
): Promise<void> {
  provider = await startRecordingProvider(respond, key)
  const baseUrl = `https://127.0.0.1:${provider.port}/v1`
  const reach = { provider: 'nova', baseUrl, apiKey: 'key', webPki: false }
  egress = createProviderEgress({
    proofs: proofsOf(reach, [spki]),
    connectMs: () => 2000,
    maxStreams: 1_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    now: Date.now,
    thread: 'thread',
    ...(writeWholeAnswer && { writeWholeAnswer }),
    log: () => {},
  })
  server = createServer((incoming, response) => {
    try {
      egress.sendWaiting((incoming.url ?? '').slice(1), response)
    } catch (error) {
      sendReply(response, refusal(error))
    }
  })
  port = await listen(server)
}

interface Told {
  readonly how: 'answer' | 'broken' | 'waiting'
  readonly head?: AnswerHead
  readonly text?: string
  readonly id?: string
}

function newCaller() {
  const told = Promise.withResolvers<Told>()
  let listener: (() => void) | undefined
  const state = { hasDisconnected: false }
  const caller: MessageCaller = {
    get hasDisconnected() {
      return state.hasDisconnected
    },
    onceDisconnected: (given) => (listener = given),
    answer: (head, body) =>
      told.resolve({ how: 'answer', head, text: Buffer.from(body).toString() }),
    breakOff: (head, part) =>
      told.resolve({ how: 'broken', head, text: Buffer.from(part).toString() }),
    wait: (id) => told.resolve({ how: 'waiting', id }),
  }
  const leave = () => {
    state.hasDisconnected = true
    listener?.()
  }
  return { caller, told: told.promise, leave }
}

const headers = {
  'content-type': 'application/json',
  'x-cmr-secret': '1',
  authorization: 'Bearer k',
}

async function carry(more: Readonly<Record<string, string>> = {}, spec?: unknown): Promise<Told> {
  const { caller, told } = newCaller()
  const call = { provider: 'nova', path: '/chat', headers: { ...headers, ...more }, whole: spec }
  await egress.carryMessage({ ...call, body: Buffer.from('{"a":1}'), caller })
  return told
}

async function fetchWaiting(id: string | undefined) {
  const answer = await fetch(`http://127.0.0.1:${port}/${id}`, { redirect: 'manual' })
  return answer
}

const whole =
  (status: number, body: string, more: Record<string, string> = {}): Respond =>
  async (incoming, response) => {
    for await (const _ of incoming);
    response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...more }).end(body)
  }

describe('a call as a message', () => {
  it('carries the request, and a small answer with the evidence of its connection', async () => {
    await set(whole(200, '{"hello":true}', { 'x-cmr-evidence-sha256': 'ff', 'x-own': 'kept' }))
    const told = await carry()
    expect(told).toMatchObject({ how: 'answer', text: '{"hello":true}', head: { status: 200 } })
    expect(told.head?.headers).toMatchObject({
      'content-length': '14',
      'x-own': 'kept',
      'x-cmr-evidence-sha256': 'e0'.repeat(32),
    })
    expect(told.head?.headers).not.toHaveProperty('connection')
    const received = provider.received().toLowerCase()
    expect(received).toMatch(/^post \/v1\/chat http\/1\.1\r\n/)
    expect(received).toContain('accept-encoding: identity')
    expect(received).toContain('content-length: 7\r\n')
    expect(received).toContain('authorization: bearer k')
    expect(received).not.toContain('x-cmr')
    expect(received).toContain('{"a":1}')
  })

  it('uses a connection again', async () => {
    await set(whole(429, 'busy'))
    expect(await carry()).toMatchObject({ head: { status: 429 }, text: 'busy' })
    await poolHasLooked()
    expect(await carry()).toMatchObject({ head: { status: 429 }, text: 'busy' })
    expect(provider.connections()).toBe(1)
  })

  it('says where an answer broke off', async () => {
    await set(async (incoming, response) => {
      for await (const _ of incoming);
      response.writeHead(200, { 'content-length': '100' })
      response.write('the start', () => response.destroy())
    })
    expect(await carry()).toMatchObject({
      how: 'broken',
      head: { status: 200, headers: { 'content-length': '100' } },
      text: 'the start',
    })
  })

  const large = 'x'.repeat(SMALL_BODY_BYTES + 1)
  type Waits = [string, number, string, OutgoingHttpHeaders]
  it.each([
    ['has a coding of its own', 200, '{"a":1}', { 'content-encoding': 'identity' }],
    ['comes in chunks and is not small', 200, large.repeat(3), { 'transfer-encoding': 'chunked' }],
    ['is a stream of events', 200, 'data: {}\n\n', { 'content-type': 'text/event-stream' }],
    ['is not small', 200, large, { 'content-length': String(large.length) }],
    ['is encoded', 200, 'abc', { 'content-length': '3', 'content-encoding': 'br' }],
    ['has a header of other characters', 200, 'abc', { 'content-length': '3', 'x-a': '\u00e9' }],
    ['has a header twice', 200, 'abc', { 'content-length': '3', 'set-cookie': ['a=1', 'b=2'] }],
  ] satisfies Waits[])('leaves an answer waiting that %s', async (_what, status, body, head) => {
    await set(async (incoming, response) => {
      for await (const _ of incoming);
      response.writeHead(status, head)
      response.end(body)
    })
    const { how, id } = await carry()
    expect(how).toBe('waiting')
    const sent = request({ host: '127.0.0.1', port, path: `/${id}`, agent: false }).end()
    const [answer] = await once(sent, 'response')
    let text = ''
    for await (const part of answer) text += String(part)
    expect([answer.statusCode, text]).toEqual([status, body])
    expect(answer.headers['x-cmr-evidence-sha256']).toBe('e0'.repeat(32))
  })

  it('leaves an answer in chunks waiting that does not end, with what came of it', async () => {
    const end = Promise.withResolvers<void>()
    await set(async (incoming, response) => {
      for await (const _ of incoming);
      response.write('the start, ')
      await end.promise
      response.end('the rest')
    })
    const { how, id } = await carry()
    expect(how).toBe('waiting')
    const answer = fetchWaiting(id)
    end.resolve()
    expect(await (await answer).text()).toBe('the start, the rest')
  })

  it('gives a waiting answer in the spec in which it came, also where its end is there already', async () => {
    const end = Promise.withResolvers<void>()
    await set(async (incoming, response) => {
      for await (const _ of incoming);
      response.writeHead(200, { 'content-encoding': 'identity', 'content-length': 19 })
      response.write('the start, ')
      await end.promise
      response.end('the rest')
    })
    const { id } = await carry()
    end.resolve()
    await delay(50)
    expect(await (await fetchWaiting(id)).text()).toBe('the start, the rest')
  })

  it('leaves an answer without a body waiting', async () => {
    await set((_request, response) => void response.writeHead(204).end())
    const { id } = await carry()
    const answer = await fetchWaiting(id)
    expect([answer.status, await answer.text()]).toEqual([204, ''])
  })

  it('lets a waiting answer break off as the provider did', async () => {
    await set(async (incoming, response) => {
      for await (const _ of incoming);
      response.writeHead(200, { 'content-encoding': 'identity' })
      response.write('the start')
      setTimeout(() => response.destroy(), 50)
    })
    const { id } = await carry()
    const answer = await fetchWaiting(id)
    await expect(answer.text()).rejects.toThrow('terminated')
  })

  it('gives a waiting answer once, and none of another id, in the name of the daemon', async () => {
    await set(whole(200, 'abc', { 'content-encoding': 'identity' }))
    const { id } = await carry()
    expect(await (await fetchWaiting(id)).text()).toBe('abc')
    for (const unknown of [id, 'thread-99']) {
      const answer = await fetchWaiting(unknown)
      expect(answer.status).toBe(404)
      expect(answer.headers.get('x-cmr-egress-error')).toBe('not_found')
      expect(await answer.json()).toEqual({
        error: { code: 'not_found', message: 'no such answer' },
      })
    }
  })

  it('ends at the provider when its caller leaves', async () => {
    const begun = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    await set((incoming) => {
      begun.resolve()
      incoming.socket.once('close', () => gone.resolve())
    })
    const { caller, leave } = newCaller()
    const call = { provider: 'nova', path: '/chat', headers, body: Buffer.from('x'), caller }
    const carried = egress.carryMessage(call)
    await begun.promise
    leave()
    await expect(carried).rejects.toMatchObject({ code: 'provider_unreachable' })
    await gone.promise
  })

  it('is not sent for a caller that left before there was a connection', async () => {
    await set(whole(200, 'ok'))
    const { caller, leave } = newCaller()
    const call = { provider: 'nova', path: '/chat', headers, body: Buffer.from('x'), caller }
    const carried = egress.carryMessage(call)
    leave()
    await carried
    expect(provider.received()).toBe('')
  })

  it('is refused where evidence or constraints are not met, and sends nothing', async () => {
    await set(whole(200, 'ok'))
    await expect(carry({ 'x-cmr-require': 'nonsense' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'the constraints are malformed',
    })
    const { caller } = newCaller()
    const call = { provider: 'other', path: '/', headers, body: Buffer.from('x'), caller }
    await expect(egress.carryMessage(call)).rejects.toMatchObject({
      code: 'not_found',
      message: 'no provider of that name',
    })
    expect(provider.received()).toBe('')
  })

  it('gets no invalid answer', async () => {
    await set((incoming) => void incoming.socket.end('nonsense\r\n\r\n'))
    await expect(carry()).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})

describe('an answer that was requested whole', () => {
  const spec = wholeAnswerSpec()
  let asked: { readonly call: WholeAnswerCall; readonly answer: string }[]
  beforeEach(() => {
    asked = []
  })

  const writing =
    (written: WrittenWholeAnswer | undefined): WriteWholeAnswer =>
    (call, answer, awaits) => {
      asked.push({ call, answer: answer.toString() })
      setImmediate(() => awaits.tell(written))
    }

  it('is written from the whole answer, and its record is beside it', async () => {
    const body = Buffer.from('{"for":"the client"}')
    await set(
      whole(200, '{"of":"nova"}'),
      undefined,
      writing({ body, record: WHOLE_ANSWER_RECORD }),
    )
    const told = await carry({}, spec)
    expect(told).toMatchObject({
      how: 'answer',
      text: '{"for":"the client"}',
      head: {
        status: 200,
        headers: { 'content-length': '20', 'x-cmr-evidence-sha256': 'e0'.repeat(32) },
        whole: WHOLE_ANSWER_RECORD,
      },
    })
    const call = { spec, provider: 'nova', evidenceSha256: 'e0'.repeat(32) }
    expect(asked).toMatchObject([{ call, answer: '{"of":"nova"}' }])
    expect(Buffer.from(asked[0]?.call.request ?? []).toString()).toBe('{"a":1}')
    expect(provider.received()).not.toContain('chatcmpl-1')
  })

  it('is the provider’s where it cannot be written, without a record', async () => {
    await set(whole(200, '{"of":"nova"}'), undefined, writing(undefined))
    const told = await carry({}, spec)
    expect(told).toMatchObject({ how: 'answer', text: '{"of":"nova"}' })
    expect(told.head).not.toHaveProperty('whole')
    expect(asked).toHaveLength(1)
  })

  it.each<[string, Respond]>([
    ['a refusal', whole(503, '{"of":"nova"}')],
    [
      'an answer that breaks off',
      (_incoming, response) => {
        response.writeHead(200, { 'content-length': '99' })
        response.write('{"of":')
        setTimeout(() => response.destroy(), 20)
      },
    ],
    ['one in another coding', whole(200, 'zipped', { 'content-encoding': 'gzip' })],
    ['one that is no small one', whole(200, 'x'.repeat(SMALL_BODY_BYTES + 1))],
  ])('is not written from %s', async (_name, respond) => {
    await set(respond, undefined, writing({ body: Buffer.from('{}'), record: WHOLE_ANSWER_RECORD }))
    const told = await carry({}, spec)
    expect(told.head ?? {}).not.toHaveProperty('whole')
    expect(asked).toEqual([])
  })

  it.each([null, {}, { ...spec, format: { door: 'other' } }, { ...spec, more: 1 }])(
    'is refused where its specification is %j, and the provider is not called',
    async (malformed) => {
      await set(whole(200, '{}'))
      const refused = await carry({}, malformed).catch((error: unknown) => error)
      expect(refused).toMatchObject({
        code: 'invalid_request',
        message: 'the specification of the whole answer is malformed',
      })
      expect(provider.received()).toBe('')
    },
  )
})
