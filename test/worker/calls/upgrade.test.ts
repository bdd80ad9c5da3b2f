import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { upgrade } from '../../../src/worker/calls/upgrade.ts'
import { ownTimers } from '../../support/own-timers.ts'
import { FakeSocket } from './fake-socket.ts'

const url = 'https://enclave/v1/chunks/id-1'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const opening = (fetch: (url: string, init: RequestInit) => Promise<Response>) =>
  upgrade({ binding: { fetch }, url }, Date.now)

it('a connection is the WebSocket that its address is upgraded to, and no timer is left', async () => {
  const timers = ownTimers()
  const socket = new FakeSocket()
  const asked: unknown[] = []
  const opened = await opening(async (address, { headers }) => {
    asked.push(address, headers)
    return Object.assign(new Response(null), { webSocket: socket })
  })
  expect(opened).toBe(socket)
  // Whoever asked for it listens before it accepts it.
  expect(socket.accepted).toBe(false)
  expect(asked).toEqual([url, { upgrade: 'websocket' }])
  expect([timers.set(), timers.left()]).toEqual([1, 0])
})

it('an answer without a WebSocket is none, and is not read', async () => {
  const timers = ownTimers()
  let canceled = 0
  const body = () => new ReadableStream({ cancel: () => void (canceled += 1) })
  const refused = [
    async () => new Response(body(), { status: 404 }),
    async () => Object.assign(new Response(body()), { webSocket: null }),
    async () => new Response(null),
  ]
  for (const answer of refused) {
    await expect(opening(answer)).rejects.toThrow('no connection is taken there')
  }
  expect([canceled, timers.left()]).toEqual([2, 0])
})

it('a connection that cannot be opened fails with its error, and no timer is left', async () => {
  const timers = ownTimers()
  const error = new Error('connection refused')
  await expect(opening(() => Promise.reject(error))).rejects.toBe(error)
  expect(timers.left()).toBe(0)
})

it('a connection that is not opened in three seconds is given up', async () => {
  const signals: AbortSignal[] = []
  const opened = opening(
    (_url, { signal }) =>
      new Promise((_resolve, reject) => {
        if (!signal) return
        signals.push(signal)
        signal.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  )
  const outcome = opened.catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(2_999)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  await vi.advanceTimersByTimeAsync(1)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(await outcome).toEqual(new Error('aborted'))
})
