import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { oneTimer } from '../../../src/worker/batching/one-timer.ts'
import { ownTimers } from '../../support/own-timers.ts'

let begunAt: number
let events: string[]

beforeEach(() => {
  vi.useFakeTimers()
  begunAt = performance.now()
  events = []
})
afterEach(() => void vi.useRealTimers())

const note = (name: string) => () => void events.push(`${name} ${performance.now() - begunAt}`)

describe('the one timer of a request', () => {
  it('calls back at each of its times, in their order, those of one moment in the order they were set', async () => {
    const after = oneTimer(Date.now)
    after(500, note('b'))
    after(2_000, note('d'))
    after(100, note('a'))
    after(500, note('c'))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(events).toEqual(['a 100', 'b 500', 'c 500', 'd 2000'])
  })

  it('keeps one timer of the platform, also while times are set and stopped', async () => {
    const timers = ownTimers()
    const after = oneTimer(Date.now)
    for (let count = 0; count < 10; count++) after(1_000, note('stopped')).stop()
    after(600_000, note('budget'))
    after(5_000, note('connect'))
    expect([timers.set(), timers.left()]).toEqual([1, 1])
    await vi.advanceTimersByTimeAsync(600_000)
    expect(events).toEqual(['connect 5000', 'budget 600000'])
    expect([timers.set(), timers.left()]).toEqual([3, 0])
  })

  it('counts a time from the moment it is set, whether or not the timer runs', async () => {
    const after = oneTimer(Date.now)
    after(1_000, note('first')).stop()
    await vi.advanceTimersByTimeAsync(400)
    after(2_000, note('during'))
    await vi.advanceTimersByTimeAsync(5_000)
    after(100, note('later'))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(events).toEqual(['during 2400', 'later 5500'])
  })

  it('sets no timer for a time that begins later and passes after the one that runs has fired', async () => {
    const timers = ownTimers()
    const after = oneTimer(Date.now)
    after(1_000, note('stopped')).stop()
    await vi.advanceTimersByTimeAsync(10)
    after(60_000, note('budget'))
    await vi.advanceTimersByTimeAsync(10)
    const connect = after(5_000, note('connect'))
    await vi.advanceTimersByTimeAsync(10)
    after(1_000, note('same length'))
    expect(timers.set()).toBe(1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(events).toEqual(['same length 1030'])
    connect.stop()
    await vi.advanceTimersByTimeAsync(100_000)
    expect(events).toEqual(['same length 1030', 'budget 60010'])
  })

  it.each([
    [-3_600_000, 6_000],
    [3_600_000, 5_000],
  ])(
    'passes a later time off by no more than the timer ran when the clock is set by %i ms meanwhile',
    async (by, passesAt) => {
      const after = oneTimer(Date.now)
      after(1_000, note('a'))
      await vi.advanceTimersByTimeAsync(400)
      after(5_000, note('later'))
      await vi.advanceTimersByTimeAsync(100)
      vi.setSystemTime(Date.now() + by)
      await vi.advanceTimersByTimeAsync(20_000)
      expect(events).toEqual(['a 1000', `later ${passesAt}`])
    },
  )

  it('measures a time of its own beside a timer that runs longer, or for long', async () => {
    const after = oneTimer(Date.now)
    after(100, note('first'))
    after(30_000, note('long'))
    await vi.advanceTimersByTimeAsync(200)
    // The timer runs for 29.9 seconds now.
    after(29_950, note('later'))
    after(50, note('short'))
    await vi.advanceTimersByTimeAsync(40_000)
    expect(events).toEqual(['first 100', 'short 250', 'long 30000', 'later 30150'])
  })

  it('lets a callback set times and stop others', async () => {
    const after = oneTimer(Date.now)
    const other = after(300, note('stopped'))
    after(200, () => {
      other.stop()
      after(50, note('next'))
    })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(events).toEqual(['next 250'])
  })

  it('calls the others back when one throws', async () => {
    const after = oneTimer(Date.now)
    after(100, () => {
      throw new Error('thrown by a callback')
    })
    after(100, note('same moment'))
    after(200, note('later'))
    await expect(vi.advanceTimersByTimeAsync(100)).rejects.toThrow('thrown by a callback')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(events).toEqual(['same moment 100', 'later 200'])
  })

  it.each([-3_600_000, 3_600_000])('keeps its times when the clock is set by %i ms', async (by) => {
    const after = oneTimer(Date.now)
    after(1_000, note('a'))
    after(3_000, note('b'))
    await vi.advanceTimersByTimeAsync(200)
    vi.setSystemTime(Date.now() + by)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(events).toEqual(['a 1000', 'b 3000'])
  })

  it.each([-3_600_000, -300, 300, 3_600_000])(
    'keeps the times of limits that begin after the clock was set by %i ms, and those of the others',
    async (by) => {
      const after = oneTimer(Date.now)
      after(1_000, note('a'))
      after(10_000, note('b'))
      await vi.advanceTimersByTimeAsync(400)
      vi.setSystemTime(Date.now() + by)
      after(200, note('short'))
      after(5_000, note('long'))
      await vi.advanceTimersByTimeAsync(20_000)
      expect(events).toEqual(['short 600', 'a 1000', 'long 5400', 'b 10000'])
    },
  )

  it('keeps the time of a limit that begins when the clock was set back to where an earlier one began', async () => {
    const after = oneTimer(Date.now)
    const begun = Date.now()
    after(100, note('a'))
    after(1_000, note('b'))
    await vi.advanceTimersByTimeAsync(500)
    vi.setSystemTime(begun)
    after(600, note('c'))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(events).toEqual(['a 100', 'b 1000', 'c 1100'])
  })

  it('leaves no timer of an earlier moment running once its times are stopped', async () => {
    const timers = ownTimers()
    const after = oneTimer(Date.now)
    for (let count = 0; count < 10; count++) {
      const limit = after(600_000, note('stopped'))
      await vi.advanceTimersByTimeAsync(10)
      const next = after(600_000, note('stopped'))
      limit.stop()
      next.stop()
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(timers.left()).toBe(1)
  })
})
