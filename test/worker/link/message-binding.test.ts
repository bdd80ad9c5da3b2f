import { describe, expect, it } from 'vitest'
import {
  MAX_OPEN_CALLS,
  MESSAGE_KINDS,
  SMALL_BODY_BYTES,
} from '../../../src/protocol/link-messages.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import type { MessageBinding } from '../../../src/worker/link/message-binding.ts'
import { wholeAnswerSpec } from '../../support/whole-answer-spec.ts'
import { settled, type FakeSocket } from '../calls/fake-socket.ts'
import { answer, BROKEN, CHAT, ORIGIN, post, set, SIGN } from './message-daemon.ts'

describe('the link with messages', () => {
  it('makes its first call over HTTP, and the next ones over the connection opened beside it', async () => {
    const { messages, overHttp, sockets, open } = set()
    const socket = await open()
    expect([socket.accepted, socket.binaryType]).toEqual([true, 'arraybuffer'])
    const call = messages.fetch(SIGN, post({ headers: { 'Content-Type': 'a/b' }, body: 'body' }))
    await settled()
    const [sent] = socket.sent
    expect(sent).toMatchObject({ kind: MESSAGE_KINDS.call, id: 1 })
    expect(JSON.parse(sent?.head ?? '')).toEqual({
      path: '/v1/sign',
      headers: { 'content-type': 'a/b' },
    })
    expect(new TextDecoder().decode(sent?.body)).toBe('body')
    socket.reply(answer(1, 'signed', 429))
    const response = await call
    expect([response.status, response.headers.get('x-a')]).toEqual([429, 'b'])
    expect(await response.text()).toBe('signed')
    expect([sockets.length, overHttp]).toEqual([1, []])
  })

  const spec = wholeAnswerSpec()

  it('requests a whole answer beside the head of a message, and has what the daemon says of it', async () => {
    const { messages, overHttp, inits, open } = set()
    const socket = await open()
    const call = messages.fetch(CHAT, post({ whole: spec }))
    await settled()
    expect(JSON.parse(socket.sent[0]?.head ?? '')).toMatchObject({ whole: spec })
    const head = JSON.stringify({ status: 200, headers: {}, whole: { counts: 1 } })
    socket.reply({ kind: MESSAGE_KINDS.answer, id: 1, head, body: new Uint8Array(0) })
    expect((await call).whole).toEqual({ counts: 1 })
    // Over HTTP nothing is requested: the answer there is the provider's.
    const large = new Uint8Array(SMALL_BODY_BYTES + 1)
    expect((await messages.fetch(CHAT, post({ whole: spec, body: large }))).whole).toBeUndefined()
    expect([overHttp.length, inits.at(-1)]).toEqual([1, { method: 'POST', body: large }])
  })

  it('sends what one moment brings in one frame, and gives each its own answer', async () => {
    const { messages, open } = set()
    const socket = await open()
    const calls = Array.from({ length: 20 }, async (_, index) => {
      const response = await messages.fetch(CHAT, post({ body: String(index) }))
      return response.text()
    })
    await settled()
    expect(socket.frames).toHaveLength(1)
    socket.reply(
      ...socket.sent.toReversed().map(({ id, body }) => answer(id, new TextDecoder().decode(body))),
    )
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 20 }, (_, i) => String(i)))
  })

  it.each([
    ['another method', SIGN, { method: 'GET' }],
    ['a path of large or slow answers', `${ORIGIN}/v1/attestation`, post()],
    ['a stream specification', CHAT, post({ headers: { 'x-cmr-chunks': 'x' } })],
    ['a stream that is asked for', CHAT, post({ headers: { accept: 'text/event-stream' } })],
    ['a large body', CHAT, post({ body: new Uint8Array(SMALL_BODY_BYTES + 1) })],
    ['a streamed body', CHAT, post({ body: new ReadableStream() })],
    ['a header of other characters', CHAT, post({ headers: { authorization: 'k\u00e9y' } })],
    ['headers in another form', CHAT, post({ headers: new Headers() })],
  ])('makes a call with %s over HTTP', async (_what, url, init) => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const response = await messages.fetch(url, init)
    expect(await response.text()).toBe(new URL(url).pathname)
    expect([socket.sent, overHttp.length]).toEqual([[], 1])
  })

  it('fetches an answer that waits, and calls that path over HTTP for a minute', async () => {
    const { messages, overHttp, inits, clock, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const call = messages.fetch(CHAT, post({ signal }))
    await settled()
    const head = JSON.stringify({ waiting: 'thread-1' })
    socket.reply({ kind: MESSAGE_KINDS.waiting, id: 1, head, body: new Uint8Array(0) })
    expect(await (await call).text()).toBe('/v1/waiting/thread-1')
    expect(inits.at(-1)).toEqual({ redirect: 'manual', signal: signal.ofPlatform() })
    await messages.fetch(CHAT, post())
    expect(overHttp).toEqual(['/v1/waiting/thread-1', '/v1/egress/nova/chat'])
    clock.now += 60_001
    void messages.fetch(CHAT, post()).catch(() => {})
    await settled()
    expect(socket.sent).toHaveLength(2)
  })

  it('breaks off where the daemon has an answer no more that waited, as that is no refusal', async () => {
    const { messages, daemon, open } = set()
    const socket = await open()
    const call = messages.fetch(CHAT, post())
    await settled()
    daemon.stillHasAnswers = false
    const head = JSON.stringify({ waiting: 'thread-1' })
    socket.reply({ kind: MESSAGE_KINDS.waiting, id: 1, head, body: new Uint8Array(0) })
    await expect(call).rejects.toThrow('the waiting answer is no longer there')
  })

  it('gives the start of an answer that broke off, and then its error', async () => {
    const { messages, open } = set()
    const socket = await open()
    const call = messages.fetch(CHAT, post())
    await settled()
    socket.reply({ ...answer(1, 'start', 500), kind: MESSAGE_KINDS.broken })
    const response = await call
    expect(response.status).toBe(500)
    const reader = response.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('start')
    await expect(reader?.read()).rejects.toThrow('the answer broke off')
  })

  it('tells the daemon of a call that is given up, and ignores its answer', async () => {
    const { messages, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const call = messages.fetch(CHAT, post({ signal }))
    const other = messages.fetch(CHAT, post())
    await settled()
    signal.abort(new Error('the client left'))
    await expect(call).rejects.toThrow('the client left')
    await settled()
    expect(socket.sent.at(-1)).toMatchObject({ kind: MESSAGE_KINDS.cancel, id: 1, head: '' })
    socket.reply(answer(1, 'late'), answer(2, 'other'), answer(99, 'nobody'))
    expect(await (await other).text()).toBe('other')
    const aborted = new OwnSignal()
    aborted.abort(new Error('too late'))
    await expect(messages.fetch(CHAT, post({ signal: aborted }))).rejects.toThrow('too late')
    expect(socket.sent).toHaveLength(3)
  })

  it('does not tell it of a call that is answered', async () => {
    const { messages, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const call = messages.fetch(CHAT, post({ signal }))
    await settled()
    socket.reply(answer(1))
    await call
    signal.abort(new Error('late'))
    await settled()
    expect(socket.sent).toHaveLength(1)
  })

  it.each([
    ['is closed', 2, (socket: FakeSocket) => socket.tell('close')],
    ['fails', 2, (socket: FakeSocket) => socket.tell('error')],
    ['brings a frame of text', 2, (socket: FakeSocket) => socket.tell('message', '{}')],
    [
      'brings a frame that is none',
      2,
      (socket: FakeSocket) => socket.tell('message', new ArrayBuffer(3)),
    ],
    [
      'cannot be written to',
      3,
      (socket: FakeSocket, messages: MessageBinding) => {
        socket.fails = true
        void messages.fetch(CHAT, post()).catch(() => {})
      },
    ],
  ])(
    'fails all calls of providers over a connection that %s, tells how many, and opens another one',
    async (_what, count, end) => {
      const { messages, ended, overHttp, clock, sockets, kept, open } = set()
      const socket = await open()
      const calls = [messages.fetch(CHAT, post()), messages.fetch(CHAT, post())]
      const failed = Promise.all(calls.map((call) => expect(call).rejects.toThrow(BROKEN)))
      await settled()
      end(socket, messages)
      await failed
      await Promise.all(kept)
      expect(ended).toEqual([count])
      // Not at once.
      await messages.fetch(CHAT, post())
      expect([sockets.length, overHttp]).toEqual([1, ['/v1/egress/nova/chat']])
      clock.now += 1_001
      const next = await open()
      expect(sockets).toHaveLength(2)
      void messages.fetch(CHAT, post()).catch(() => {})
      await settled()
      expect(next.sent).toHaveLength(1)
    },
  )

  it('goes on over HTTP where the daemon takes no messages, and asks again only after a second', async () => {
    const { messages, ended, overHttp, sockets, kept } = set({ takesMessages: false })
    for (let call = 0; call < 5; call += 1) {
      await messages.fetch(SIGN, post())
      await settled()
    }
    expect([overHttp.length, sockets.length, kept.length, ended]).toEqual([5, 0, 1, []])
  })

  it('makes no more calls over a connection than may be open', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const calls = Array.from({ length: MAX_OPEN_CALLS }, () => messages.fetch(CHAT, post()))
    await settled()
    expect(socket.sent).toHaveLength(MAX_OPEN_CALLS)
    await messages.fetch(CHAT, post())
    expect(overHttp).toHaveLength(1)
    socket.reply(answer(1))
    await calls[0]
    void messages.fetch(CHAT, post()).catch(() => {})
    await settled()
    expect(socket.sent).toHaveLength(MAX_OPEN_CALLS + 1)
  })

  it('forgets calls whose requests never ended them', async () => {
    const { messages, clock, open } = set()
    const socket = await open()
    void messages.fetch(CHAT, post())
    await settled()
    clock.now += 7_200_001
    void messages.fetch(CHAT, post())
    await settled()
    expect(socket.sent.map(({ kind, id }) => [kind, id])).toEqual([
      [MESSAGE_KINDS.call, 1],
      [MESSAGE_KINDS.cancel, 1],
      [MESSAGE_KINDS.call, 2],
    ])
  })

  it('gives up a connection whose request ended while it opened it', async () => {
    const { messages, clock, daemon, overHttp, sockets, open } = set({ opens: false })
    await messages.fetch(SIGN, post())
    clock.now += 251
    await messages.fetch(SIGN, post())
    clock.now += 10_000
    await messages.fetch(SIGN, post())
    expect([overHttp.length, sockets.length]).toEqual([3, 0])
    daemon.opens = true
    const socket = await open()
    void messages.fetch(SIGN, post()).catch(() => {})
    await settled()
    expect(socket.sent).toHaveLength(1)
  })

  it('keeps one whose request had no turn yet, because nothing ran', async () => {
    const { messages, clock, overHttp, open } = set()
    const socket = await open()
    const first = messages.fetch(CHAT, post())
    clock.now += 60_000
    await messages.fetch(CHAT, post())
    expect(overHttp).toHaveLength(1)
    await settled()
    socket.reply(answer(1, 'after a pause'))
    expect(await (await first).text()).toBe('after a pause')
  })

  it('leaves a connection whose request does not run any more', async () => {
    const { messages, clock, overHttp, sockets, open } = set()
    await open()
    // Before the request that owns the connection continues.
    const first = messages.fetch(CHAT, post())
    clock.now += 251
    void messages.fetch(CHAT, post())
    expect(overHttp).toHaveLength(1)
    clock.now += 10_000
    void messages.fetch(CHAT, post())
    // It was never sent.
    expect(await (await first).text()).toBe('/v1/egress/nova/chat')
    expect(overHttp).toHaveLength(3)
    clock.now += 1_001
    await messages.fetch(CHAT, post())
    await settled()
    expect(sockets).toHaveLength(2)
  })
})
