import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { heldAnswer } from '../../../src/worker/http/held-answer.ts'
import { json, jsonText } from '../../../src/worker/http/reply.ts'

const MIB = 1024 * 1024
const now = () => Date.now()

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
  vi.spyOn(globalThis, 'clearTimeout')
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

function held(bytes = MIB) {
  const whole = Uint8Array.from({ length: bytes }, (_, index) => index % 251)
  const client = new AbortController()
  const set = vi.spyOn(globalThis, 'setTimeout')
  const given = heldAnswer(jsonText(whole, { 'x-a': 'b' }), now, client.signal)
  const timers = set.mock.results.map(({ value }) => value)
  set.mockRestore()
  if (given === undefined) throw new Error('not held')
  let taken = false
  void given.taken.then(() => (taken = true))
  /** Its own: a count of all timers would have those of other files that run in the same process. */
  const timersLeft = () => {
    const cleared = vi.mocked(clearTimeout).mock.calls.map(([timer]) => timer)
    return timers.filter((timer) => !cleared.includes(timer)).length
  }
  return { ...given, whole, isTaken: () => taken, timersLeft, clientLeaves: () => client.abort() }
}

describe('a large answer', () => {
  test('holds what it holds until the last byte of it was taken, and is the same', async () => {
    const { answer, whole, isTaken, timersLeft } = held()
    expect([answer.status, answer.headers.get('x-a')]).toEqual([200, 'b'])
    await vi.advanceTimersByTimeAsync(9_999)
    expect([isTaken(), timersLeft()]).toEqual([false, 1])
    expect(Buffer.from(await answer.arrayBuffer()).equals(Buffer.from(whole))).toBe(true)
    expect(isTaken()).toBe(true)
    expect(timersLeft()).toBe(0)
  })

  test('lets go when its client leaves', async () => {
    const { answer, isTaken, timersLeft } = held()
    const reader = answer.body?.getReader()
    await reader?.read()
    expect(isTaken()).toBe(false)
    await reader?.cancel()
    expect(isTaken()).toBe(true)
    expect(timersLeft()).toBe(0)
  })

  test('lets go when its client has left before any of it was asked for', async () => {
    const { answer, isTaken, timersLeft, clientLeaves } = held()
    clientLeaves()
    await vi.advanceTimersByTimeAsync(0)
    expect(isTaken()).toBe(true)
    expect(timersLeft()).toBe(0)
    await expect(answer.arrayBuffer()).rejects.toThrow('the client has disconnected')
  })

  test('is broken off for a client that takes it at less than 32 KB a second, ten seconds given', async () => {
    const { answer, isTaken } = held(3_200_000)
    const reader = answer.body?.getReader()
    await reader?.read()
    await vi.advanceTimersByTimeAsync(10_000 + 100_000 - 1)
    expect(isTaken()).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(isTaken()).toBe(true)
    await expect(reader?.read()).rejects.toThrow('the client takes its answer too slowly')
  })
})

test('an answer that is small, or whose length is not known, is passed on as it is', () => {
  const { signal } = new AbortController()
  expect(heldAnswer(jsonText(new Uint8Array(256 * 1024)), now, signal)).toBeUndefined()
  expect(heldAnswer(json({ a: 'x'.repeat(MIB) }), now, signal)).toBeUndefined()
  expect(heldAnswer(new Response(null), now, signal)).toBeUndefined()
})

test('an answer whose client has left already holds nothing', () => {
  expect(heldAnswer(jsonText(new Uint8Array(MIB)), now, AbortSignal.abort())).toBeUndefined()
})
