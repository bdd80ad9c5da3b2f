import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ownTimers } from './own-timers.ts'

/** As what another file leaves behind in the process: it goes on beside the test. */
const others = (() => {
  let wake: (() => void) | undefined
  const sleeping = () => new Promise<void>((resolve) => (wake = resolve))
  const again = () => setTimeout(() => void setTimeout(() => {}, 1_000), 10)
  void (async () => {
    for (;;) {
      await sleeping()
      again()
    }
  })()
  return { setTimer: () => wake?.() }
})()

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('timers of the test are counted until they fire or are stopped', async () => {
  const timers = ownTimers()
  const fired: unknown[] = []
  setTimeout((text: string) => fired.push(text), 100, 'first')
  await Promise.resolve()
  const stopped = setTimeout(() => fired.push('never'), 200)
  expect([timers.set(), timers.left()]).toEqual([2, 2])
  clearTimeout(stopped)
  expect(timers.left()).toBe(1)
  await vi.advanceTimersByTimeAsync(200)
  expect([timers.set(), timers.left(), fired]).toEqual([2, 0, ['first']])
})

test('those that they set when they fire, too', async () => {
  const timers = ownTimers()
  setTimeout(() => void setTimeout(() => {}, 100), 100)
  await vi.advanceTimersByTimeAsync(150)
  expect([timers.set(), timers.left()]).toEqual([2, 1])
})

test('those that others set meanwhile are not, nor what they set when they fire', async () => {
  const timers = ownTimers()
  others.setTimer()
  await vi.advanceTimersByTimeAsync(0)
  expect([timers.set(), vi.getTimerCount()]).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(10)
  expect([timers.set(), timers.left(), vi.getTimerCount()]).toEqual([0, 0, 1])
})
