import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  MAX_MESSAGE_BYTES,
  MAX_OPEN_CALLS,
  MESSAGE_KINDS,
  writeFrames,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import { MessageConnection, type Reply } from '../../../src/worker/calls/message-connection.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { FakeSocket, settled } from './fake-socket.ts'
import { ownTimers } from '../../support/own-timers.ts'

const HEAD = { path: '/v1/sign', headers: {} }
const callOf = (text = '') => ({ head: HEAD, body: new TextEncoder().encode(text) })
const sized = (bytes: number) => ({ head: HEAD, body: new Uint8Array(bytes) })

const answer = (id: number, text = ''): LinkMessage => ({
  kind: MESSAGE_KINDS.answer,
  id,
  head: '{}',
  body: new TextEncoder().encode(text),
})

const textOf = ({ body }: Pick<Reply, 'body'>) => new TextDecoder().decode(body)
const kindsOf = (socket: FakeSocket) => socket.sent.map(({ kind, id }) => [kind, id])

const NEVER_SENT = { name: 'ConnectionEnded', wasSent: false }
const PERHAPS_SENT = {
  name: 'ConnectionEnded',
  message: 'the connection for messages ended',
  wasSent: true,
}

function set(now?: () => number) {
  const clock = { now: 10_000 }
  const kept: Promise<unknown>[] = []
  const ended: number[] = []
  const host = {
    now: now ?? (() => clock.now),
    keepAlive: (work: Promise<unknown>) => void kept.push(work),
  }
  const connection = new MessageConnection(host, (calls) => void ended.push(calls))
  const socket = new FakeSocket()
  const opening = Promise.withResolvers<FakeSocket>()
  const run = connection.run(() => opening.promise)
  const open = async () => {
    opening.resolve(socket)
    await settled()
  }
  const call = (text?: string, signal?: OwnSignal) => connection.call(callOf(text), signal)
  return { connection, socket, opening, run, open, call, clock, kept, ended }
}

afterEach(() => void vi.useRealTimers())

describe('a connection for messages', () => {
  it('sends calls in the order in which they are made, those of one moment in one frame', async () => {
    const { socket, open, call } = set()
    await open()
    for (const text of ['a', 'b', 'c']) void call(text)
    await settled()
    void call('d')
    await settled()
    expect(socket.frames.map((frame) => frame.map(textOf))).toEqual([['a', 'b', 'c'], ['d']])
    expect(kindsOf(socket)).toEqual([1, 2, 3, 4].map((id) => [MESSAGE_KINDS.call, id]))
    expect(JSON.parse(socket.sent[0]?.head ?? '')).toEqual(HEAD)
  })

  it('splits what is larger than a frame may be, and keeps the order', async () => {
    const { connection, socket, open, call } = set()
    await open()
    void connection.call(sized(MAX_MESSAGE_BYTES / 2), undefined)
    void connection.call(sized(MAX_MESSAGE_BYTES / 2), undefined)
    void call('small')
    await settled()
    expect(socket.frames.map((frame) => frame.map(({ id }) => id))).toEqual([[1], [2, 3]])
  })

  it('gives each call its own answer, in whatever order and frames they come', async () => {
    const { socket, open, call } = set()
    await open()
    const calls = ['a', 'b', 'c'].map((text) => call(text))
    await settled()
    socket.reply(answer(3, 'third'))
    for (const frame of writeFrames([answer(2, 'second'), answer(1, 'first')])) {
      socket.tell('message', frame.buffer)
    }
    expect((await Promise.all(calls)).map(textOf)).toEqual(['first', 'second', 'third'])
  })

  it('ignores a second answer, one to nobody, and one to a call that was given up', async () => {
    const { connection, socket, open, call } = set()
    await open()
    const signal = new OwnSignal()
    const left = call('left', signal)
    const calls = [call('a'), call('b')]
    await settled()
    signal.abort(new Error('the client left'))
    await expect(left).rejects.toThrow('the client left')
    socket.reply(answer(2, 'first'), answer(2, 'again'), answer(1, 'late'), answer(99, 'nobody'))
    socket.reply(answer(3, 'other'))
    expect((await Promise.all(calls)).map(textOf)).toEqual(['first', 'other'])
    expect(connection.state).toBe('open')
  })

  it('gives a call that is never answered nothing but the end of the connection', async () => {
    const { socket, open, call, run, ended } = set()
    await open()
    const outcomes: unknown[] = []
    const never = call('never').catch((error: unknown) => outcomes.push(error))
    const other = call('other')
    await settled()
    socket.reply(answer(2))
    await other
    await settled()
    expect(outcomes).toEqual([])
    socket.tell('close')
    await never
    await run
    expect(outcomes).toMatchObject([PERHAPS_SENT])
    expect(ended).toEqual([1])
  })

  it('does not send a call that is given up before its turn', async () => {
    const { socket, open, call } = set()
    await open()
    const signal = new OwnSignal()
    const left = call('left', signal)
    void call('other')
    signal.abort(new Error('the client left'))
    await expect(left).rejects.toThrow('the client left')
    await settled()
    expect(kindsOf(socket)).toEqual([
      [MESSAGE_KINDS.cancel, 1],
      [MESSAGE_KINDS.call, 2],
    ])
  })

  it('takes as many calls and bytes as may be open, and more once some are answered', async () => {
    const { connection, socket, open, call } = set()
    await open()
    for (let count = 0; count < MAX_OPEN_CALLS; count += 1) void call()
    expect(connection.takes(callOf())).toBe(false)
    await settled()
    socket.reply(answer(1))
    expect(connection.takes(callOf())).toBe(true)
    expect(connection.takes(sized(16 * 1024 * 1024))).toBe(false)
  })

  it('says of each call whether it may have left when the connection ends', async () => {
    const { socket, open, call, ended, run } = set()
    await open()
    const sent = call('sent')
    await settled()
    const unsent = call('unsent')
    socket.tell('close')
    await expect(sent).rejects.toMatchObject(PERHAPS_SENT)
    await expect(unsent).rejects.toMatchObject(NEVER_SENT)
    await run
    expect([ended, kindsOf(socket)]).toEqual([[2], [[MESSAGE_KINDS.call, 1]]])
  })

  it('takes what could not be written for what may have left', async () => {
    const { socket, open, call } = set()
    await open()
    socket.fails = true
    await expect(call()).rejects.toMatchObject(PERHAPS_SENT)
  })

  it('takes no call before it is open, and tells nobody that it ended then', async () => {
    const { connection, opening, run, ended } = set()
    expect([connection.state, connection.takes(callOf())]).toEqual(['opening', false])
    opening.reject(new Error('connection refused'))
    await run
    expect([connection.state, connection.takes(callOf()), ended]).toEqual(['ended', false, []])
  })

  it('fails a call at once after its end, as never sent, and ignores what still comes', async () => {
    const { connection, socket, open, call, run, ended } = set()
    await open()
    socket.tell('close')
    await run
    expect([connection.state, connection.takes(callOf()), socket.closed]).toEqual([
      'ended',
      false,
      true,
    ])
    await expect(call()).rejects.toMatchObject(NEVER_SENT)
    socket.reply(answer(1))
    socket.tell('error')
    socket.tell('close')
    expect([socket.sent, ended]).toEqual([[], [0]])
  })

  it('closes what opens only after it was given up', async () => {
    const { connection, socket, opening, run, clock, ended } = set()
    clock.now += 250
    expect(connection.takes(callOf())).toBe(false)
    clock.now += 10_000
    expect(connection.takes(callOf())).toBe(false)
    expect(connection.state).toBe('ended')
    opening.resolve(socket)
    await run
    expect([connection.state, socket.closed, ended]).toEqual(['ended', true, []])
  })

  it('forgets calls that nobody ended for hours', async () => {
    const { connection, socket, open, call, clock } = set()
    await open()
    void call()
    await settled()
    clock.now += 7_200_001
    expect(connection.takes(callOf())).toBe(true)
    await settled()
    expect(kindsOf(socket)).toEqual([
      [MESSAGE_KINDS.call, 1],
      [MESSAGE_KINDS.cancel, 1],
    ])
  })

  /** Promises continue only when a test waits: until then, the request that owns the connection has no turn. */
  const pass = (ms: number) => void vi.advanceTimersByTime(ms)

  describe('whose request is lost', () => {
    it('fails within a second what was not sent, although no other call comes, and never sends it', async () => {
      vi.useFakeTimers({ now: 0 })
      const timers = ownTimers()
      const { connection, socket, open, call, ended, kept } = set(Date.now)
      await open()
      const calls = [call('a'), call('b')]
      pass(1_000)
      expect([connection.state, connection.takes(callOf())]).toEqual(['open', false])
      await Promise.all(calls.map((one) => expect(one).rejects.toMatchObject(NEVER_SENT)))
      // It was only late.
      await settled()
      expect(kindsOf(socket)).toEqual([
        [MESSAGE_KINDS.cancel, 1],
        [MESSAGE_KINDS.cancel, 2],
      ])
      expect([connection.takes(callOf()), ended]).toEqual([true, []])
      pass(1_000)
      await Promise.all(kept)
      expect(timers.left()).toBe(0)
    })

    it('fails after ten seconds more what was sent, and ends', async () => {
      vi.useFakeTimers({ now: 0 })
      const timers = ownTimers()
      const { connection, socket, open, call, ended } = set(Date.now)
      await open()
      const sent = call('sent')
      await settled()
      const unsent = call('unsent')
      pass(12_000)
      expect([connection.state, ended, timers.left()]).toEqual(['ended', [1], 0])
      await expect(sent).rejects.toMatchObject(PERHAPS_SENT)
      await expect(unsent).rejects.toMatchObject(NEVER_SENT)
      expect(kindsOf(socket)).toEqual([[MESSAGE_KINDS.call, 1]])
    })

    it('is not taken for lost at the first sight after a pause of the machine', async () => {
      const { connection, socket, open, call, clock } = set()
      await open()
      const first = call('first')
      clock.now += 60_000
      expect(connection.takes(callOf())).toBe(false)
      await settled()
      expect(connection.takes(callOf())).toBe(true)
      socket.reply(answer(1, 'after the pause'))
      expect(textOf(await first)).toBe('after the pause')
    })
  })
})
