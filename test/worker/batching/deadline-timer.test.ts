import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startDeadline } from '../../../src/worker/batching/deadline-timer.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A deadline after a second; `sleep` is time in which the program does not run. */
function deadline() {
  let slept = 0
  const passed = vi.fn<() => void>()
  const timer = startDeadline(1_000, () => Date.now() + slept, passed)
  return { timer, passed, sleep: (ms: number) => (slept += ms) }
}

describe('a deadline', () => {
  test('passes at its time', () => {
    const { passed } = deadline()
    vi.advanceTimersByTime(999)
    expect(passed).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(passed).toHaveBeenCalledTimes(1)
  })

  test('waits another second when the program did not run meanwhile, and again when it did not run then', () => {
    const { passed, sleep } = deadline()
    for (let times = 0; times < 3; times++) {
      sleep(60_000)
      vi.advanceTimersByTime(1_000)
      expect(passed).not.toHaveBeenCalled()
    }
    vi.advanceTimersByTime(1_000)
    expect(passed).toHaveBeenCalledTimes(1)
  })

  test('passes all the same where the program is late again and again', () => {
    const { passed, sleep } = deadline()
    for (let times = 0; times < 10; times++) {
      sleep(300)
      vi.advanceTimersByTime(1_000)
      expect(passed).not.toHaveBeenCalled()
    }
    sleep(300)
    vi.advanceTimersByTime(1_000)
    expect(passed).toHaveBeenCalledTimes(1)
  })

  test('does not pass once it is stopped, also in its second wait', () => {
    const { timer, passed, sleep } = deadline()
    sleep(60_000)
    vi.advanceTimersByTime(1_000)
    timer.stop()
    vi.advanceTimersByTime(60_000)
    expect(passed).not.toHaveBeenCalled()
  })
})

describe('what is left of a deadline', () => {
  test('is never more than its time, though the clock is set back by an hour', () => {
    const { timer, sleep } = deadline()
    sleep(-3_600_000)
    expect(timer.leftMs()).toBe(1_000)
  })

  test('is what is left of its time, and nothing from its end on', () => {
    const { timer } = deadline()
    vi.advanceTimersByTime(400)
    expect(timer.leftMs()).toBe(600)
    vi.advanceTimersByTime(600)
    expect(timer.leftMs()).toBe(0)
  })

  test('is nothing once it has passed, however long ago', () => {
    const { timer, passed } = deadline()
    vi.advanceTimersByTime(1_000)
    expect(passed).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(60_000)
    expect(timer.leftMs()).toBe(0)
  })

  test('is the second that it will wait where the program did not run, also before the timer has fired', () => {
    const { timer, passed, sleep } = deadline()
    sleep(60_000)
    expect(timer.leftMs()).toBe(1_000)
    vi.advanceTimersByTime(1_000)
    expect(timer.leftMs()).toBe(1_000)
    vi.advanceTimersByTime(400)
    expect(timer.leftMs()).toBe(600)
    expect(passed).not.toHaveBeenCalled()
  })
})
