import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { oneTimer } from '../../../src/worker/batching/one-timer.ts'
import { after as ownTimer, type After } from '../../../src/worker/batching/deadline-timer.ts'
import { BodyClock, type BodyTimes } from '../../../src/worker/http/body-clock.ts'
import { ownTimers } from '../../support/own-timers.ts'

/** The time limit of request bodies, with a clock that the test holds. */

const SLOW = { code: 'request_timeout', message: 'The request body came too slowly.' }
const NEVER = new Promise<never>(() => {})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A read that takes so long by timers. */
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Runs timers until a read is given up; answers when, in ms from now. */
async function givenUpAfter(reading: Promise<unknown>): Promise<number> {
  const begun = Date.now()
  const outcome: { error?: unknown } = {}
  void reading.catch((error: unknown) => (outcome.error = error))
  while (outcome.error === undefined) await vi.advanceTimersByTimeAsync(100)
  expect(outcome.error).toMatchObject(SLOW)
  return Date.now() - begun
}

/** The program does not run for so long: the time passes, and no timer fires. */
const starve = (ms: number) => vi.setSystemTime(Date.now() + ms)

const TIMERS: readonly [string, () => After][] = [
  ['timers of its own', () => ownTimer],
  ['the one timer of its request', () => oneTimer(Date.now)],
]

describe.each(TIMERS)('a body that is timed with %s', (_, timer) => {
  const clockOf = (times?: BodyTimes) => new BodyClock(Date.now, times, timer())

  test.each([
    [0, 10_000],
    [64_000, 12_000],
    [3_200_000, 110_000],
  ])('of %i bytes may be waited for %i ms', async (bytes, ms) => {
    expect(await givenUpAfter(clockOf().within(NEVER, bytes))).toBe(ms)
  })

  test('has its time in all reads together, and none of it is lost between them', async () => {
    const clock = clockOf()
    for (let read = 0; read < 4; read++) {
      const reading = clock.within(after(2_000), 0)
      await vi.advanceTimersByTimeAsync(2_000)
      await reading
      // The program works on what came.
      await vi.advanceTimersByTimeAsync(60_000)
    }
    expect(await givenUpAfter(clock.within(NEVER, 0))).toBe(2_000)
  })

  test('does not time out because of time in which this program did not run', async () => {
    const clock = clockOf()
    const reading = clock.within(after(6_000), 0)
    for (let second = 0; second < 6; second++) {
      starve(30_000)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    await expect(reading).resolves.toBeUndefined()
    expect(await givenUpAfter(clock.within(NEVER, 0))).toBe(4_000)
  })

  test('that came while this program did not run is taken, however late that is', async () => {
    const clock = clockOf({ stallMs: 20_000, totalMs: 300_000 })
    for (let read = 0; read < 100; read++) {
      const { promise, resolve } = Promise.withResolvers<string>()
      const reading = clock.within(promise, read * 65_536)
      starve(60_000)
      resolve('bytes')
      await expect(reading).resolves.toBe('bytes')
    }
  })

  test('that stalls is ended although its rate would allow more', async () => {
    const clock = clockOf({ stallMs: 20_000 })
    expect(await givenUpAfter(clock.within(NEVER, 32_000_000))).toBe(20_000)
  })

  test('is ended after the time limit of all bodies of its kind', async () => {
    const clock = clockOf({ stallMs: 20_000, totalMs: 300_000 })
    for (let read = 0; read < 15; read++) {
      const reading = clock.within(after(19_000), 1e9)
      await vi.advanceTimersByTimeAsync(19_000)
      await reading
    }
    expect(await givenUpAfter(clock.within(NEVER, 1e9))).toBe(15_000)
  })

  test('a clock that is put back gives no more time', async () => {
    const reading = clockOf().within(NEVER, 0)
    await vi.advanceTimersByTimeAsync(5_000)
    starve(-3_600_000)
    expect(await givenUpAfter(reading)).toBeLessThanOrEqual(6_000)
  })
})

test('a read that fails rejects with its error, and leaves no timer', async () => {
  const timers = ownTimers()
  const clock = new BodyClock(Date.now)
  await expect(clock.within(Promise.reject(new Error('gone')), 0)).rejects.toThrow('gone')
  expect(timers.left()).toBe(0)
})
