import { describe, expect, test } from 'vitest'
import { bucketOf, percentileOf } from '../../../src/worker/history/series.ts'

function bucketsOf(times: readonly number[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const time of times) counts.set(bucketOf(time), (counts.get(bucketOf(time)) ?? 0) + 1)
  return counts
}

describe('percentiles of times in buckets', () => {
  test('lie in the bucket in which so many of the times have come', () => {
    const times = Array.from({ length: 100 }, (_, index) => (index < 90 ? 80 : 900))
    const buckets = bucketsOf(times)
    expect(percentileOf(buckets, 0.5)).toBeGreaterThan(75)
    expect(percentileOf(buckets, 0.5)).toBeLessThanOrEqual(100)
    expect(percentileOf(buckets, 0.95)).toBeGreaterThan(750)
    expect(percentileOf(buckets, 0.95)).toBeLessThanOrEqual(1000)
  })

  test('never fall as the fraction rises, and are off by no more than their bucket', () => {
    const times = Array.from({ length: 500 }, (_, index) => (index + 1) * 17)
    const found = [0.1, 0.5, 0.9, 0.95, 0.99, 1].map((one) => percentileOf(bucketsOf(times), one))
    expect(found).toEqual(found.toSorted((left, right) => (left ?? 0) - (right ?? 0)))
    // The true median is 4250, in the bucket from 3000 to 5000.
    expect(Math.abs((found[1] ?? 0) - 4250)).toBeLessThan(100)
  })

  test('beyond the last bucket are its lower bound, and without values there are none', () => {
    expect(percentileOf(bucketsOf([3_600_000]), 0.5)).toBe(600_000)
    expect(percentileOf(new Map(), 0.5)).toBeNull()
  })
})
