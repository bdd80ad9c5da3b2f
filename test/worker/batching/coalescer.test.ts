import { describe, expect, it, vi } from 'vitest'
import { createBatcher } from '../../../src/worker/batching/batcher.ts'
import { createCoalescer } from '../../../src/worker/batching/coalescer.ts'
import { createMicrotaskBatcher } from '../../../src/worker/batching/microtask-batcher.ts'
import { ownTimers } from '../../support/own-timers.ts'

const HOST = { now: () => 0, keepAlive: () => {} }
const RULES = { maxItems: 10, joinTimeoutMs: 1_000, timeoutError: () => new Error('late') }

describe('work done together', () => {
  it('finds each other in the calls it makes', async () => {
    const calls: (readonly number[])[] = []
    const run = async (requests: readonly number[]) => {
      calls.push(requests)
      return requests
    }
    const call = createBatcher(HOST, { ...RULES, run })
    const together = createCoalescer(HOST, RULES)
    const works = [1, 2, 3].map((ask) => together('a', async () => void (await call(ask))))
    await Promise.all(works)
    expect(calls).toEqual([[1, 2, 3]])
  })

  it('fails each by itself', async () => {
    const together = createCoalescer(HOST, RULES)
    const failure = new Error('mine')
    const ends = await Promise.allSettled([
      together('a', async () => {}),
      together('a', () => Promise.reject(failure)),
      together('a', async () => {}),
    ])
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(ends[1]).toMatchObject({ reason: failure })
  })

  it('waits for no work of another group', async () => {
    const together = createCoalescer(HOST, RULES)
    const slow = Promise.withResolvers<void>()
    const ended: string[] = []
    const works = [
      together('slow', () => slow.promise).then(() => ended.push('slow')),
      together('quick', async () => {}).then(() => ended.push('quick')),
      together('quick', async () => {}).then(() => ended.push('quick')),
    ]
    await Promise.all(works.slice(1))
    expect(ended).toEqual(['quick', 'quick'])
    slow.resolve()
    await works[0]
    expect(ended).toEqual(['quick', 'quick', 'slow'])
  })

  it('answers each when it ends, whatever others of its group still wait for', async () => {
    const kept: Promise<unknown>[] = []
    const together = createCoalescer({ ...HOST, keepAlive: (work) => kept.push(work) }, RULES)
    const slow = Promise.withResolvers<void>()
    const failing = Promise.withResolvers<void>()
    const ended: string[] = []
    const works = [
      together('a', () => slow.promise).then(() => ended.push('slow')),
      together('a', async () => {}).then(() => ended.push('quick')),
      together('a', () => failing.promise).catch((error: unknown) => ended.push(String(error))),
    ]
    await works[1]
    expect(ended).toEqual(['quick'])
    failing.reject(new Error('mine'))
    await works[2]
    expect(ended).toEqual(['quick', 'Error: mine'])
    slow.resolve()
    await works[0]
    expect(ended).toEqual(['quick', 'Error: mine', 'slow'])
    await Promise.all(kept)
  })

  it('fails what takes longer than a request may wait, alone', async () => {
    vi.useFakeTimers()
    const together = createCoalescer(HOST, RULES)
    const works = [
      together('a', () => new Promise(() => {})).catch((error: unknown) => String(error)),
      together('a', async () => {}),
    ]
    await vi.advanceTimersByTimeAsync(500)
    await works[1]
    await vi.advanceTimersByTimeAsync(1_500)
    expect(await works[0]).toBe('Error: late')
    vi.useRealTimers()
  })

  it('makes its calls without a timer each', async () => {
    const sign = createMicrotaskBatcher(HOST, {
      ...RULES,
      run: async (asks: readonly number[]) => asks,
    })
    const calls: (readonly number[])[] = []
    const store = createMicrotaskBatcher(HOST, {
      ...RULES,
      run: async (asks: readonly number[]) => {
        calls.push(asks)
        return asks
      },
    })
    const together = createCoalescer({ ...HOST, openRequests: () => 1 }, RULES)
    vi.useFakeTimers()
    const timers = ownTimers()
    const works = [1, 2, 3].map((ask) =>
      together('a', async () => void (await store(await sign(ask)))),
    )
    await Promise.all(works)
    expect(timers.left()).toBe(0)
    vi.useRealTimers()
    expect(calls).toEqual([[1, 2, 3]])
  })

  it('has its request measure the time that it waits for others', async () => {
    const together = createCoalescer(HOST, RULES)
    const times: number[] = []
    const callAfter = (ms: number) => {
      times.push(ms)
      return { stop: () => void times.push(0) }
    }
    await Promise.all(['leads', 'joins'].map(() => together('a', async () => {}, callAfter)))
    expect(times).toEqual([1_000, 0])
  })
})
