import { describe, expect, it } from 'vitest'
import { ConnectionEnded } from '../../../src/worker/calls/message-connection.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { MESSAGE_KINDS } from '../../../src/protocol/link-messages.ts'
import { settled } from '../calls/fake-socket.ts'
import { answer, CHAT, post, set, SIGN } from './message-daemon.ts'

describe('the link with messages, when their connection ends', () => {
  it('asks once more over HTTP for what may be asked twice', async () => {
    const { messages, overHttp, inits, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const sent = { body: 'receipts', headers: { 'content-type': 'a/b' } }
    const init = post({ ...sent, signal })
    const calls = Promise.allSettled([messages.fetch(SIGN, init), messages.fetch(CHAT, post())])
    await settled()
    expect(socket.sent).toHaveLength(2)
    socket.tell('close')
    const [signed, called] = await calls
    expect(signed.status === 'fulfilled' && (await signed.value.text())).toBe('/v1/sign')
    expect(called).toEqual({ status: 'rejected', reason: new ConnectionEnded(true) })
    expect([overHttp, inits.at(-1)]).toEqual([
      ['/v1/sign'],
      { method: 'POST', ...sent, signal: signal.ofPlatform() },
    ])
  })

  it('makes over HTTP what it has not sent, for whomever that is', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const called = messages.fetch(CHAT, post())
    socket.tell('close')
    expect(await (await called).text()).toBe('/v1/egress/nova/chat')
    expect([socket.sent, overHttp]).toEqual([[], ['/v1/egress/nova/chat']])
  })

  it('asks nothing more than once again, and gives the error of that', async () => {
    const { messages, daemon, overHttp, open } = set()
    const socket = await open()
    const signed = messages.fetch(SIGN, post())
    await settled()
    daemon.isGone = true
    socket.tell('close')
    await expect(signed).rejects.toThrow('connection refused')
    expect(overHttp).toEqual(['/v1/sign'])
  })

  it('asks nothing more for whom has left or has no time left', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const signed = messages.fetch(SIGN, post({ signal }))
    await settled()
    socket.tell('close')
    signal.abort(new Error('too late'))
    await expect(signed).rejects.toThrow('too late')
    expect(overHttp).toEqual([])
  })

  it('makes over HTTP what the request that owns the connection has not sent for half a second', async () => {
    const { messages, overHttp, clock, ended, open } = set()
    const socket = await open()
    const first = messages.fetch(CHAT, post({ body: 'first' }))
    for (let call = 0; call < 2; call += 1) {
      clock.now += 250
      void messages.fetch(CHAT, post())
    }
    expect(await (await first).text()).toBe('/v1/egress/nova/chat')
    await settled()
    expect([overHttp.length, ended]).toEqual([3, []])
    expect(socket.sent.map(({ kind, id }) => [kind, id])).toEqual([[MESSAGE_KINDS.cancel, 1]])
  })

  it('never sends a call that was given up before it left', async () => {
    const { messages, overHttp, open } = set()
    const socket = await open()
    const signal = new OwnSignal()
    const called = messages.fetch(CHAT, post({ signal }))
    const other = messages.fetch(CHAT, post({ body: 'other' }))
    signal.abort(new Error('the client left'))
    await expect(called).rejects.toThrow('the client left')
    await settled()
    expect(socket.sent.map(({ kind, id }) => [kind, id])).toEqual([
      [MESSAGE_KINDS.cancel, 1],
      [MESSAGE_KINDS.call, 2],
    ])
    socket.reply(answer(2, 'hello'))
    expect(await (await other).text()).toBe('hello')
    expect(overHttp).toEqual([])
  })
})
