import { describe, expect, it } from 'vitest'
import {
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import { LedgerLink } from '../../../src/worker/storage/ledger-link.ts'
import { FakeSocket, settled } from '../calls/fake-socket.ts'

const OPERATE = '/v1/operate'
const ONE = { count: 1, timeoutMs: 10_000 }
const UNAVAILABLE = {
  name: 'StorageUnavailable',
  message: expect.stringContaining('the ledger process does not answer'),
}

const answer = (id: number, outcomes: unknown, status = 200): LinkMessage => ({
  kind: MESSAGE_KINDS.answer,
  id,
  head: JSON.stringify({ status, headers: {} }),
  body: new TextEncoder().encode(JSON.stringify(outcomes)),
})

/** A ledger that answers over HTTP with the method and path of the call, and takes messages. */
function set() {
  const sockets: FakeSocket[] = []
  const overHttp: string[] = []
  const ended: number[] = []
  const clock = { now: 10_000 }
  const binding = {
    fetch: async (url: string, { method = 'GET' }: RequestInit): Promise<Response> => {
      const { pathname } = new URL(url)
      if (pathname === '/v1/messages') {
        const socket = new FakeSocket()
        sockets.push(socket)
        return Object.assign(new Response(null), { webSocket: socket })
      }
      overHttp.push(`${method} ${pathname}`)
      if (pathname === '/v1/waiting/gone') return new Response('', { status: 404 })
      return Response.json([pathname])
    },
  }
  const link = new LedgerLink(binding, {
    now: () => clock.now,
    keepAlive: () => {},
    messagesEnded: (calls) => void ended.push(calls),
  })
  const operate = (body = 'x', terms = ONE) => link.callSmall(OPERATE, body, terms)
  /** With the connection open. */
  const open = async () => {
    await operate()
    await settled()
    overHttp.length = 0
    const [socket] = sockets
    if (socket === undefined) throw new Error('no connection')
    return socket
  }
  return { link, operate, open, overHttp, sockets, ended, clock }
}

describe('the link to the ledger process', () => {
  it('makes the first small call over HTTP, and the next ones as messages', async () => {
    const { operate, open, overHttp } = set()
    const socket = await open()
    const call = operate('operations')
    await settled()
    const [sent] = socket.sent
    expect(sent).toMatchObject({ kind: MESSAGE_KINDS.call, id: 1 })
    expect(JSON.parse(sent?.head ?? '')).toEqual({ path: OPERATE, headers: {} })
    expect(new TextDecoder().decode(sent?.body)).toBe('operations')
    socket.reply(answer(1, ['outcome']))
    expect([await call, overHttp]).toEqual([['outcome'], []])
  })

  it('makes every other call over HTTP', async () => {
    const { link, open, overHttp } = set()
    const socket = await open()
    expect(await link.call('/v1/read', '{}', ONE)).toEqual(['/v1/read'])
    expect([socket.sent, overHttp]).toEqual([[], ['POST /v1/read']])
  })

  it('makes a call over HTTP that is larger than a message may be, and one as large as that as a message', async () => {
    const { operate, open, overHttp } = set()
    const socket = await open()
    expect(await operate('x'.repeat(MAX_MESSAGE_BODY_BYTES + 1))).toEqual([OPERATE])
    expect([socket.sent, overHttp]).toEqual([[], [`POST ${OPERATE}`]])
    const call = operate('x'.repeat(MAX_MESSAGE_BODY_BYTES))
    await settled()
    socket.reply(answer(1, ['outcome']))
    expect(await call).toEqual(['outcome'])
  })

  it('fetches an answer that is larger than a message may be', async () => {
    const { operate, open, overHttp } = set()
    const socket = await open()
    const call = operate()
    await settled()
    const head = JSON.stringify({ waiting: '7' })
    socket.reply({ kind: MESSAGE_KINDS.waiting, id: 1, head, body: new Uint8Array(0) })
    expect([await call, overHttp]).toEqual([['/v1/waiting/7'], ['GET /v1/waiting/7']])
  })

  const waitingForGone = JSON.stringify({ waiting: 'gone' })
  const nothing = new Uint8Array(0)
  it.each<[string, LinkMessage]>([
    ['a refusal', answer(1, ['outcome'], 400)],
    ['too few outcomes', answer(1, [])],
    ['what is no list', answer(1, {})],
    ['no JSON', { ...answer(1, []), body: nothing }],
    ['an answer that broke off', { ...answer(1, ['outcome']), kind: MESSAGE_KINDS.broken }],
    [
      'an answer that waits no more',
      { ...answer(1, []), kind: MESSAGE_KINDS.waiting, head: waitingForGone },
    ],
  ])('is unavailable where a message is answered with %s', async (_what, reply) => {
    const { operate, open } = set()
    const socket = await open()
    const call = operate()
    await settled()
    socket.reply(reply)
    await expect(call).rejects.toMatchObject(UNAVAILABLE)
  })

  it('makes over HTTP what it has not sent before the connection ends', async () => {
    const { operate, open, overHttp } = set()
    const socket = await open()
    const call = operate()
    socket.tell('close')
    expect([await call, socket.sent, overHttp]).toEqual([[OPERATE], [], [`POST ${OPERATE}`]])
  })

  it('makes over HTTP what the request that owns the connection has not sent for half a second', async () => {
    const { operate, open, overHttp, ended, clock } = set()
    const socket = await open()
    const call = operate()
    for (let other = 0; other < 2; other += 1) {
      clock.now += 250
      void operate()
    }
    expect([await call, overHttp.length, ended]).toEqual([[OPERATE], 3, []])
    await settled()
    expect(socket.sent.map(({ kind }) => kind)).toEqual([MESSAGE_KINDS.cancel])
  })

  it('fails the calls of a connection that ends, tells how many, and makes the next ones over HTTP', async () => {
    const { operate, open, overHttp, ended, sockets, clock } = set()
    const socket = await open()
    const calls = [operate('one'), operate('two')]
    const failed = Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(UNAVAILABLE)))
    await settled()
    socket.tell('close')
    await failed
    expect(ended).toEqual([2])
    expect([await operate(), overHttp, sockets.length]).toEqual([[OPERATE], [`POST ${OPERATE}`], 1])
    clock.now += 1_001
    await operate()
    await settled()
    expect(sockets).toHaveLength(2)
  })
})
