import { describe, expect, it } from 'vitest'
import { MESSAGE_KINDS, SMALL_BODY_BYTES } from '../../../src/protocol/link-messages.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { settled, type FakeSocket } from '../calls/fake-socket.ts'
import { answer, BROKEN, CHAT, post, set } from './message-daemon.ts'

const headers = { accept: 'text/event-stream', 'x-cmr-chunks': 'a specification' }
const stream = { headers, hasSmallAnswer: true }

const waits = (socket: FakeSocket, id: number) => {
  const head = JSON.stringify({ waiting: 'thread-1' })
  socket.reply({ kind: MESSAGE_KINDS.waiting, id, head, body: new Uint8Array(0) })
}

describe('a call for a stream that comes in another way than in its answer', () => {
  it('is made as a message, and has its answer', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const call = messages.fetch(CHAT, post(stream))
    await settled()
    expect(JSON.parse(socket.sent[0]?.head ?? '')).toEqual({
      path: '/v1/egress/nova/chat',
      headers,
    })
    socket.reply(answer(1, 'sent'))
    expect([await (await call).text(), overHttp]).toEqual(['sent', []])
  })

  it.each([
    ['whose answer is the stream', { ...stream, hasSmallAnswer: false }],
    ['with a large body', { ...stream, body: new Uint8Array(SMALL_BODY_BYTES + 1) }],
    ['of another method', { ...stream, method: 'GET' }],
  ])('is made over HTTP %s, which is told nothing of the size', async (_what, init) => {
    const { messages, overHttp, inits, open } = set()
    const socket = await open()
    await messages.fetch(CHAT, post(init))
    expect([socket.sent, overHttp]).toEqual([[], ['/v1/egress/nova/chat']])
    expect(inits.at(-1)).not.toHaveProperty('hasSmallAnswer')
  })

  it('that waits is fetched, and whole answers of that path are still called for by messages', async () => {
    const { messages, overHttp, inits, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const call = messages.fetch(CHAT, post({ ...stream, signal }))
    await settled()
    waits(socket, 1)
    expect(await (await call).text()).toBe('/v1/waiting/thread-1')
    expect(inits.at(-1)).toEqual({ redirect: 'manual', signal: signal.ofPlatform() })
    const whole = messages.fetch(CHAT, post())
    await settled()
    socket.reply(answer(2, 'whole'))
    expect([await (await whole).text(), overHttp]).toEqual(['whole', ['/v1/waiting/thread-1']])
  })

  it('is made as a message where whole answers of that path are large', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const whole = messages.fetch(CHAT, post())
    await settled()
    waits(socket, 1)
    await whole
    const call = messages.fetch(CHAT, post(stream))
    await settled()
    socket.reply(answer(2, 'sent'))
    expect([await (await call).text(), overHttp]).toEqual(['sent', ['/v1/waiting/thread-1']])
  })

  it('is not repeated where the connection ends that it was sent over', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const call = messages.fetch(CHAT, post(stream))
    await settled()
    socket.tell('close')
    await expect(call).rejects.toThrow(BROKEN)
    expect(overHttp).toEqual([])
  })
})
