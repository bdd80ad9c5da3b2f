import { expect, test } from 'vitest'
import { RecentlySettled } from '../../../src/worker/embedded/recently-settled.ts'

test('a request is surely new where it is younger than what was settled before the start, and not settled since', () => {
  const settled = new RecentlySettled(1_000)
  expect(settled.isSurelyNew('a', 1_000)).toBe(false)
  expect(settled.isSurelyNew('a', 1_001)).toBe(true)
  settled.add('a', 1_500)
  expect(settled.isSurelyNew('a', 2_000)).toBe(false)
  expect(settled.isSurelyNew('b', 1_001)).toBe(true)
})

test('a request that was settled is never new again, however many are settled after it', () => {
  const settled = new RecentlySettled(0)
  settled.add('first', 10)
  const answers = Array.from({ length: 50_000 }, (_, index) => {
    settled.add(`later ${index + 1}`, 11 + index)
    // Its admission was not after its settlement.
    return settled.isSurelyNew('first', 10)
  })
  expect(answers).not.toContain(true)
  expect(settled.isSurelyNew('later 1', 11)).toBe(false)
  expect(settled.isSurelyNew('later 50000', 60_000)).toBe(false)
  expect(settled.isSurelyNew('new', 60_000)).toBe(true)
})
