import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StageClock } from '../../../src/worker/stream/stage-clock.ts'

const HOUR_MS = 3_600_000

let offset = 0
let timeouts = 0
const clock = () =>
  new StageClock(
    () => Date.now() + offset,
    () => void (timeouts += 1),
  )

beforeEach(() => {
  vi.useFakeTimers()
  offset = 0
  timeouts = 0
})

afterEach(() => void vi.useRealTimers())

test('a stage without progress ends after its limit, and one with progress that long after the last', () => {
  const stages = clock()
  stages.enter(1_000)
  vi.advanceTimersByTime(900)
  stages.progress()
  vi.advanceTimersByTime(999)
  expect(timeouts).toBe(0)
  vi.advanceTimersByTime(1)
  expect(timeouts).toBe(1)
})

test('a clock that is set back extends a stage by no more than its limit', () => {
  const stages = clock()
  stages.enter(1_000)
  vi.advanceTimersByTime(500)
  offset = -HOUR_MS
  vi.advanceTimersByTime(500)
  expect(timeouts).toBe(0)
  vi.advanceTimersByTime(1_000)
  expect(timeouts).toBe(1)
})
