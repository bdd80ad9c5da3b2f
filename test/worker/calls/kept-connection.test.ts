import { afterEach, describe, expect, it, vi } from 'vitest'
import { KeptConnection } from '../../../src/worker/calls/kept-connection.ts'
import { FakeSocket, settled } from './fake-socket.ts'
import { ownTimers } from '../../support/own-timers.ts'

const URL = 'https://enclave/v1/messages'
const CALL = { head: { path: '/v1/sign', headers: {} }, body: new Uint8Array(0) }

type Answer = (init: RequestInit) => Promise<Response>

function set(now?: () => number) {
  const clock = { now: 10_000 }
  const asked: { url: string; init: RequestInit }[] = []
  const sockets: FakeSocket[] = []
  const upgrade: Answer = async () => {
    const webSocket = new FakeSocket()
    sockets.push(webSocket)
    return Object.assign(new Response(null), { webSocket })
  }
  const peer = { answer: upgrade }
  const fetch = (url: string, init: RequestInit) => {
    asked.push({ url, init })
    return peer.answer(init)
  }
  const kept: Promise<unknown>[] = []
  const ended: number[] = []
  const host = {
    now: now ?? (() => clock.now),
    keepAlive: (work: Promise<unknown>) => void kept.push(work),
  }
  const target = { binding: { fetch }, url: URL }
  const connections = new KeptConnection(target, host, (calls) => void ended.push(calls))
  return { connections, peer, upgrade, asked, sockets, kept, ended, clock }
}

afterEach(() => void vi.useRealTimers())

describe('the connection that is kept', () => {
  it('is opened at the first call, which does not wait for it, and serves the next ones', async () => {
    const { connections, asked, sockets, kept } = set()
    expect(asked).toEqual([])
    expect(connections.forCall(CALL)).toBeUndefined()
    expect(asked).toMatchObject([{ url: URL, init: { headers: { upgrade: 'websocket' } } }])
    await settled()
    const connection = connections.forCall(CALL)
    expect(connection?.state).toBe('open')
    expect(connections.forCall(CALL)).toBe(connection)
    expect([asked.length, sockets.length, kept.length]).toEqual([1, 1, 1])
  })

  it('is one, however many ask while it is being opened', async () => {
    const { connections, asked } = set()
    for (let call = 0; call < 5; call += 1) expect(connections.forCall(CALL)).toBeUndefined()
    await settled()
    expect(asked).toHaveLength(1)
  })

  it('is opened anew after its end, when it is asked for, and not sooner than after a second', async () => {
    const { connections, asked, sockets, ended, clock } = set()
    connections.forCall(CALL)
    await settled()
    sockets[0]?.tell('close')
    await settled()
    expect([asked.length, ended]).toEqual([1, [0]])
    clock.now += 999
    expect(connections.forCall(CALL)).toBeUndefined()
    expect(asked).toHaveLength(1)
    clock.now += 1
    expect(connections.forCall(CALL)).toBeUndefined()
    await settled()
    expect([asked.length, connections.forCall(CALL)?.state]).toEqual([2, 'open'])
  })

  it('is opened anew where the clock was set back by more than a second', async () => {
    const { connections, asked, sockets, clock } = set()
    connections.forCall(CALL)
    await settled()
    sockets[0]?.tell('close')
    clock.now -= 3_600_000
    connections.forCall(CALL)
    expect(asked).toHaveLength(2)
  })

  it('gets no second one beside it while it takes no calls', async () => {
    const { connections, asked, clock } = set()
    connections.forCall(CALL)
    await settled()
    void connections.forCall(CALL)?.call(CALL, undefined)
    clock.now += 1_001
    expect(connections.forCall(CALL)).toBeUndefined()
    expect(asked).toHaveLength(1)
  })

  it.each<[string, Answer]>([
    ['refuses the upgrade', async () => new Response('not found', { status: 404 })],
    ['does not answer', () => Promise.reject(new Error('connection refused'))],
  ])('is tried again after a second where the other side %s', async (_what, answer) => {
    const { connections, peer, upgrade, asked, kept, ended, clock } = set()
    peer.answer = answer
    connections.forCall(CALL)
    await Promise.all(kept)
    expect([connections.forCall(CALL), asked.length]).toEqual([undefined, 1])
    peer.answer = upgrade
    clock.now += 1_000
    connections.forCall(CALL)
    await settled()
    expect([connections.forCall(CALL)?.state, ended]).toEqual(['open', []])
  })

  it('reads nothing of an answer that is no upgrade', async () => {
    const { connections, peer, kept } = set()
    const cancelled: unknown[] = []
    const body = new ReadableStream({ cancel: (reason) => void cancelled.push(reason) })
    peer.answer = async () => new Response(body, { status: 200 })
    connections.forCall(CALL)
    await Promise.all(kept)
    expect(cancelled).toHaveLength(1)
  })

  it('is given up when it is not open after three seconds, and tried again', async () => {
    vi.useFakeTimers({ now: 0 })
    const timers = ownTimers()
    const { connections, peer, upgrade, asked, kept } = set(Date.now)
    peer.answer = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
      })
    connections.forCall(CALL)
    await vi.advanceTimersByTimeAsync(2_999)
    expect(asked[0]?.init.signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await Promise.all(kept)
    peer.answer = upgrade
    connections.forCall(CALL)
    await settled()
    expect([connections.forCall(CALL)?.state, timers.left()]).toEqual(['open', 0])
  })
})
