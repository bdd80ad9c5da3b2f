import { afterEach, describe, expect, it, vi } from 'vitest'
import { createBatcher } from '../../../src/worker/batching/batcher.ts'
import { ownTimers } from '../../support/own-timers.ts'

const HOST = { now: () => 0, keepAlive: () => {} }
const timeoutError = () => new Error('no answer in time')

function doubling(calls: (readonly number[])[]) {
  return async (requests: readonly number[]) => {
    calls.push(requests)
    return requests.map((ask) => 2 * ask)
  }
}

/** Lets everything run that waits for no timer. */
async function microtasks(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve()
}

afterEach(() => void vi.useRealTimers())

describe('batched calls', () => {
  it('carry in one call what is asked in one moment, and in the next what is asked later', async () => {
    const calls: (readonly number[])[] = []
    const ask = createBatcher(HOST, {
      run: doubling(calls),
      maxItems: 10,
      joinTimeoutMs: 1_000,
      timeoutError,
    })
    expect(await Promise.all([ask(1), ask(2), ask(3)])).toEqual([2, 4, 6])
    expect(await ask(4)).toBe(8)
    expect(calls).toEqual([[1, 2, 3], [4]])
  })

  it('do not wait for the call before theirs', async () => {
    const started: number[] = []
    const first = Promise.withResolvers<readonly string[]>()
    const run = async (requests: readonly number[]) => {
      started.push(...requests)
      return requests[0] === 1 ? first.promise : ['second']
    }
    const ask = createBatcher<number, string>(HOST, {
      run,
      maxItems: 10,
      joinTimeoutMs: 1_000,
      timeoutError,
    })
    const slow = ask(1)
    await vi.waitFor(() => expect(started).toEqual([1]))
    expect(await ask(2)).toBe('second')
    first.resolve(['first'])
    expect(await slow).toBe('first')
  })

  it('are split where one would carry too many', async () => {
    const calls: (readonly number[])[] = []
    const ask = createBatcher(HOST, {
      run: doubling(calls),
      maxItems: 2,
      joinTimeoutMs: 1_000,
      timeoutError,
    })
    expect(await Promise.all([1, 2, 3, 4, 5].map((item) => ask(item)))).toEqual([2, 4, 6, 8, 10])
    expect(calls).toEqual([[1, 2], [3, 4], [5]])
  })

  it('are split where one would be too large, and what is too large by itself travels alone', async () => {
    const calls: (readonly number[])[] = []
    const ask = createBatcher(HOST, {
      run: doubling(calls),
      maxItems: 10,
      size: { of: (item: number) => item, max: 6 },
      joinTimeoutMs: 1_000,
      timeoutError,
    })
    expect(await Promise.all([1, 5, 2, 9, 3, 3].map((item) => ask(item)))).toEqual([
      2, 10, 4, 18, 6, 6,
    ])
    expect(new Set(calls)).toEqual(new Set([[1, 5], [2], [9], [3, 3]]))
  })

  it('fail all together, and the next ones start over', async () => {
    const failure = new Error('broken')
    let broken = true
    const run = async (requests: readonly number[]) => {
      if (broken) throw failure
      return requests
    }
    const ask = createBatcher(HOST, { run, maxItems: 10, joinTimeoutMs: 1_000, timeoutError })
    const results = await Promise.allSettled([ask(1), ask(2)])
    expect(results).toEqual([1, 2].map(() => ({ status: 'rejected', reason: failure })))
    broken = false
    expect(await ask(3)).toBe(3)
  })

  it('do not keep those who joined waiting for ever when the one that leads is lost', async () => {
    const run = () => new Promise<readonly number[]>(() => {})
    const ask = createBatcher(HOST, { run, maxItems: 10, joinTimeoutMs: 20, timeoutError })
    void ask(1)
    await expect(ask(2)).rejects.toThrow('no answer in time')
  })

  it('keep the request that leads alive until the call has ended', async () => {
    const kept: Promise<unknown>[] = []
    const answers = Promise.withResolvers<readonly number[]>()
    const host = { now: () => 0, keepAlive: (work: Promise<unknown>) => void kept.push(work) }
    const rules = { run: () => answers.promise, maxItems: 10, joinTimeoutMs: 1_000, timeoutError }
    const ask = createBatcher<number, number>(host, rules)
    const [first, second] = [ask(1), ask(2)]
    expect(kept).toHaveLength(1)
    answers.resolve([10, 20])
    await kept[0]
    expect(await Promise.all([first, second])).toEqual([10, 20])
  })

  it('are not made to wait behind a batch whose leader was lost before it was sent', async () => {
    vi.useFakeTimers()
    const timers = ownTimers()
    const clock = { now: 0 }
    const calls: (readonly number[])[] = []
    const host = { now: () => clock.now, keepAlive: () => {} }
    const rules = { run: doubling(calls), maxItems: 10, joinTimeoutMs: 1_000, timeoutError }
    const ask = createBatcher(host, rules)
    void ask(1)
    await microtasks()
    expect(timers.left()).toBe(1)
    vi.clearAllTimers()
    vi.useRealTimers()
    clock.now += 100
    expect(await ask(2)).toBe(4)
    expect(calls).toEqual([[2]])
  })

  it('tell an item that got no answer', async () => {
    const ask = createBatcher<number, number>(HOST, {
      run: async ([first = 0]) => [first],
      maxItems: 10,
      joinTimeoutMs: 1_000,
      timeoutError,
    })
    const [answered, forgotten] = await Promise.allSettled([ask(1), ask(2)])
    expect(answered).toEqual({ status: 'fulfilled', value: 1 })
    expect(forgotten).toMatchObject({
      reason: { message: 'internal error: an item of a batch got no answer' },
    })
  })

  it('are sent without waiting where no other request is open, but with all that the same one asks for', async () => {
    const calls: (readonly number[])[] = []
    let alone = true
    const host = { ...HOST, openRequests: () => (alone ? 1 : 2) }
    const rules = { run: doubling(calls), maxItems: 10, joinTimeoutMs: 1_000, timeoutError }
    const ask = createBatcher(host, rules)
    vi.useFakeTimers()
    const timers = ownTimers()
    expect(await Promise.all([ask(1), ask(2)])).toEqual([2, 4])
    expect(timers.left()).toBe(0)
    alone = false
    const later = ask(3)
    await microtasks()
    expect(timers.left()).toBe(1)
    vi.useRealTimers()
    expect(calls).toEqual([[1, 2]])
    void later
  })

  it('have a timer for each that joined, which is stopped by the answer', async () => {
    vi.useFakeTimers()
    const timers = ownTimers()
    const answers = Promise.withResolvers<readonly number[]>()
    const run = () => answers.promise
    const rules = { run, maxItems: 10, joinTimeoutMs: 1_000, timeoutError }
    const ask = createBatcher<number, number>(HOST, rules)
    const asked = Promise.all([1, 2, 3].map((item) => ask(item)))
    await vi.advanceTimersByTimeAsync(10)
    expect(timers.left()).toBe(2)
    answers.resolve([1, 2, 3])
    expect(await asked).toEqual([1, 2, 3])
    expect(timers.left()).toBe(0)
    vi.useRealTimers()
  })

  it('wait a moment more after a pause of the machine, in which the answer may have come', async () => {
    vi.useFakeTimers()
    const clock = { now: 0 }
    const answers = Promise.withResolvers<readonly number[]>()
    const rules = { run: () => answers.promise, maxItems: 10, joinTimeoutMs: 1_000, timeoutError }
    const host = { now: () => clock.now, keepAlive: () => {} }
    const ask = createBatcher<number, number>(host, rules)
    const asked = Promise.all([1, 2].map((item) => ask(item)))
    await vi.advanceTimersByTimeAsync(10)
    clock.now = 60_000
    await vi.advanceTimersByTimeAsync(1_000)
    answers.resolve([1, 2])
    expect(await asked).toEqual([1, 2])
    vi.useRealTimers()
  })

  it('do not time out for the one that leads, whose call has a timeout of its own', async () => {
    const answers = Promise.withResolvers<readonly string[]>()
    const rules = { run: () => answers.promise, maxItems: 10, joinTimeoutMs: 20, timeoutError }
    const ask = createBatcher<number, string>(HOST, rules)
    const leads = ask(1)
    await expect(ask(2)).rejects.toThrow('no answer in time')
    answers.resolve(['late', 'too late'])
    expect(await leads).toBe('late')
  })
})
