import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jsonAnswer, readJson } from '../../../src/enclave/link/answer.ts'
import type { AnswerRoute } from '../../../src/enclave/link/dispatch.ts'
import { createMessageDispatcher } from '../../../src/enclave/link/message-dispatch.ts'
import { startLinkServer, type LinkServer } from '../../../src/enclave/link-server/server.ts'
import { LinkError } from '../../../src/enclave/link-error.ts'
import type { MessageEgressCall } from '../../../src/enclave/open-egress.ts'
import type { LinkServerPlan } from '../../../src/protocol/boot.ts'
import { LINK_PATHS } from '../../../src/protocol/link.ts'
import {
  MAX_MESSAGE_BYTES,
  MAX_OPEN_CALLS,
  MESSAGE_KINDS,
} from '../../../src/protocol/link-messages.ts'
import { makeCertificatePair, type CertificatePair } from '../link-material.ts'
import { callMessage, leaveMessage, openMessages, textOf } from './message-client.ts'

let server: LinkServer
let own: CertificatePair
let worker: CertificatePair
let stranger: CertificatePair
/** What the egress does with the next calls. */
let carry: (call: MessageEgressCall) => Promise<void> = async () => {}
const logged: string[] = []

const ECHO = { path: '/echo', headers: {} }
const carried = (path = '/nova/chat') => ({ path: `${LINK_PATHS.egress}${path}`, headers: {} })

beforeAll(async () => {
  ;[own, worker, stranger] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
    makeCertificatePair('worker'),
  ])
  const routes: AnswerRoute[] = [
    {
      method: 'POST',
      path: '/echo',
      handle: async ({ body }) => jsonAnswer(await readJson(body, 100)),
    },
    { method: 'GET', path: '/get', handle: async () => jsonAnswer({}) },
    {
      method: 'POST',
      path: '/huge',
      handle: async () => jsonAnswer('x'.repeat(MAX_MESSAGE_BYTES)),
    },
    { method: 'POST', path: '/broken', handle: () => Promise.reject(new Error('a secret')) },
  ]
  const messages = createMessageDispatcher({
    routes,
    egress: { carryMessage: (call) => carry(call) },
    log: (event) => void logged.push(event),
  })
  const plan: LinkServerPlan = {
    port: 0,
    host: '127.0.0.1',
    serverCertPem: own.certPem,
    serverKeyPem: own.keyPem,
    workerCertPem: worker.certPem,
  }
  server = await startLinkServer(plan, (_request, response) => response.end('{}'), { messages })
})
afterAll(() => server.close())

const open = (path?: string) => openMessages(server.port, own.certPem, worker, path)

async function ask(head: Parameters<typeof callMessage>[1], body = '') {
  const client = await open()
  client.send(callMessage(1, head, body))
  const answer = await client.next()
  client.socket.terminate()
  return { kind: answer.kind, id: answer.id, head: JSON.parse(answer.head), text: textOf(answer) }
}

describe('calls as messages', () => {
  it('are answered as those over HTTP', async () => {
    expect(await ask(ECHO, '{"a":1}')).toEqual({
      kind: MESSAGE_KINDS.answer,
      id: 1,
      head: {
        status: 200,
        headers: { 'content-type': 'application/json', 'content-length': '7' },
      },
      text: '{"a":1}',
    })
  })

  it('of one connection are each answered under their own id', async () => {
    const client = await open()
    const ids = Array.from({ length: 200 }, (_, index) => index * 7)
    client.send(...ids.map((id) => callMessage(id, ECHO, String(id))))
    const found = new Map<number, string>()
    for (const _ of ids) {
      const answer = await client.next()
      found.set(answer.id, textOf(answer))
    }
    expect([...found].every(([id, text]) => text === String(id))).toBe(true)
    expect(found.size).toBe(ids.length)
    client.socket.terminate()
  })

  it.each([
    ['a path that there is not', { path: '/none', headers: {} }, '', 404, 'not_found'],
    ['a path for GET', { path: '/get', headers: {} }, '', 405, 'method_not_allowed'],
    ['a body that is no JSON', ECHO, '{', 400, 'invalid_request'],
    ['a body that is too large', ECHO, `"${'x'.repeat(100)}"`, 413, 'request_too_large'],
    ['an error', { path: '/broken', headers: {} }, '', 500, 'internal'],
    ['an answer that is not a message', { path: '/huge', headers: {} }, '', 500, 'internal'],
    ['a head that is no JSON', '{', '', 400, 'invalid_request'],
    ['a head of another form', '{"path":"echo","headers":{}}', '', 400, 'invalid_request'],
    ['an egress path without a provider', carried('/'), '', 400, 'invalid_request'],
  ])('are refused: %s', async (_what, head, body, status, code) => {
    const answer = await ask(head, body)
    expect(answer.head.status).toBe(status)
    expect(JSON.parse(answer.text).error.code).toBe(code)
    expect(answer.text).not.toContain('a secret')
  })

  it('that the egress refuses say so in the name of the daemon', async () => {
    carry = () => Promise.reject(new LinkError('provider_unproven', 'no evidence'))
    const refused = await ask(carried())
    expect(refused.head.status).toBe(503)
    expect(refused.head.headers['x-cmr-egress-error']).toBe('provider_unproven')
    carry = () => Promise.reject(new Error('a secret'))
    const failed = await ask(carried())
    expect(failed.head.headers['x-cmr-egress-error']).toBe('internal')
    expect(failed.text).not.toContain('a secret')
    expect(logged).toContain('link_failed')
  })

  it('give the egress path, headers and body, and whoever left gets no answer', async () => {
    const calls: MessageEgressCall[] = []
    const left = Promise.withResolvers<void>()
    carry = async (call) => {
      calls.push(call)
      call.caller.onceDisconnected(() => left.resolve())
    }
    const client = await open()
    const head = { ...carried('/nova/chat?x=1'), headers: { accept: 'application/json' } }
    client.send(callMessage(5, head, 'body'), leaveMessage(5), leaveMessage(6))
    await left.promise
    const [call] = calls
    expect(call).toMatchObject({ provider: 'nova', path: '/chat?x=1', headers: head.headers })
    expect(Buffer.from(call?.body ?? []).toString()).toBe('body')
    expect(call?.caller.hasDisconnected).toBe(true)
    call?.caller.answer({ status: 200, headers: {} }, Buffer.from('late'))
    // The id is free again, and whoever has it now gets no answer to the first.
    client.send(callMessage(5, head, 'next'))
    await expect.poll(() => calls.length).toBe(2)
    call?.caller.answer({ status: 200, headers: {} }, Buffer.from('late'))
    calls[1]?.caller.answer({ status: 200, headers: {} }, Buffer.from('next'))
    expect(textOf(await client.next())).toBe('next')
    client.socket.terminate()
  })

  it('have left when their connection ends, however it does', async () => {
    for (const end of ['close', 'terminate'] as const) {
      const left = Promise.withResolvers<true>()
      const begun = Promise.withResolvers<void>()
      carry = async ({ caller }) => {
        caller.onceDisconnected(() => left.resolve(true))
        begun.resolve()
      }
      const client = await open()
      client.send(callMessage(1, carried()))
      await begun.promise
      client.socket[end]()
      expect(await left.promise).toBe(true)
    }
  })
})

describe('a connection for messages ends', () => {
  const never = async () => {}

  it.each([
    ['with a frame of text', (send: (frame: string | Uint8Array) => void) => send('{}')],
    ['with a frame that is none', (send) => send(Uint8Array.of(9, 9))],
    ['with an empty frame', (send) => send(new Uint8Array(0))],
    ['with a frame that is too large', (send) => send(new Uint8Array(MAX_MESSAGE_BYTES + 1))],
  ] as [string, (send: (frame: string | Uint8Array) => void) => void][])('%s', async (_w, act) => {
    const client = await open()
    act((frame) => client.socket.send(frame))
    expect(await client.closed).toBe(true)
  })

  it('with a message that only the daemon sends', async () => {
    const client = await open()
    client.send({ ...callMessage(1, ECHO), kind: MESSAGE_KINDS.answer })
    expect(await client.closed).toBe(true)
  })

  it('with a second call of the same id', async () => {
    carry = never
    const client = await open()
    client.send(callMessage(1, carried()), callMessage(1, carried()))
    expect(await client.closed).toBe(true)
  })

  it('with more calls than may be open', async () => {
    carry = never
    const client = await open()
    const calls = Array.from({ length: MAX_OPEN_CALLS }, (_, id) => callMessage(id, carried()))
    client.send(...calls)
    await turn()
    expect(client.socket.readyState).toBe(client.socket.OPEN)
    client.send(callMessage(MAX_OPEN_CALLS, carried()))
    expect(await client.closed).toBe(true)
  })

  it('before it is open, on any other path', async () => {
    await expect(open('/v1/other')).rejects.toThrow('socket hang up')
  })

  it('before it is open, for any other peer', async () => {
    await expect(openMessages(server.port, own.certPem, stranger)).rejects.toThrow(
      /alert|reset|hang up/,
    )
  })

  it('with its server', async () => {
    carry = never
    const client = await open()
    client.send(callMessage(1, carried()))
    await server.close()
    expect(await client.closed).toBe(true)
  })
})
