import { expect, test } from 'vitest'
import { BeatWatch, newBeats } from '../../../src/enclave/carrier/heartbeat.ts'

const HEARTBEAT = { everyMs: 1_000, misses: 3 }

/** A watch, and a clock to turn. */
function watched() {
  const beats = newBeats()
  const watch = new BeatWatch(beats, HEARTBEAT, 0)
  let now = 0
  return {
    beat: () => Atomics.add(beats, 0, 1),
    lookAfter: (ms: number) => {
      now += ms
      return watch.standsStill(now)
    },
  }
}

test('a thread stands still after so many looks in a row without a beat', () => {
  const { beat, lookAfter } = watched()
  expect([1, 2].map(() => lookAfter(1_000))).toEqual([false, false])
  beat()
  expect([1, 2, 3, 4].map(() => lookAfter(1_000))).toEqual([false, false, false, true])
})

test('a machine that is paused makes no thread stand still, however long and however often', () => {
  const { beat, lookAfter } = watched()
  const looks = [1_000, 1_000, 60_000, 1_000, 1_000, 2_001, 1_000, 1_000].map(lookAfter)
  expect(looks).not.toContain(true)
  beat()
  expect(lookAfter(1_000)).toBe(false)
})

test('beats count beyond the largest number', () => {
  const beats = newBeats()
  Atomics.store(beats, 0, 2 ** 31 - 1)
  const watch = new BeatWatch(beats, { everyMs: 1_000, misses: 1 }, 0)
  Atomics.add(beats, 0, 1)
  expect(watch.standsStill(1_000)).toBe(false)
  expect(watch.standsStill(2_000)).toBe(true)
})
