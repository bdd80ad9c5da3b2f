import { describe, expect, it } from 'vitest'
import { percentile, spreadOf, spreadOfValid } from '../../../scripts/bench/figures.ts'

describe('figures of the benchmark', () => {
  it('takes percentiles by nearest rank, whatever the order of the values', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index)
    expect(percentile(values, 50)).toBe(50)
    expect(percentile(values, 99)).toBe(99)
    expect(percentile(values, 100)).toBe(100)
    expect(percentile([7], 1)).toBe(7)
  })

  it('has no percentile of nothing', () => {
    expect(percentile([], 50)).toBeNaN()
  })

  it('takes the middle of two as the median of an even number', () => {
    expect(spreadOf([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 })
    expect(spreadOf([9, 1, 5])).toEqual({ median: 5, min: 1, max: 9 })
  })

  it('leaves out figures that a window does not have', () => {
    expect(spreadOf([Number.NaN, 2, Number.POSITIVE_INFINITY])).toEqual({
      median: 2,
      min: 2,
      max: 2,
    })
    expect(spreadOf([Number.NaN])).toBeUndefined()
  })

  it('leaves out invalid windows', () => {
    const windows = [
      { invalid: null, value: 1 },
      { invalid: '3 failed: status 500', value: 1000 },
      { invalid: null, value: 3 },
    ]
    expect(spreadOfValid(windows, ({ value }) => value)).toEqual({ median: 2, min: 1, max: 3 })
    expect(spreadOfValid(windows.slice(1, 2), ({ value }) => value)).toBeUndefined()
  })
})
