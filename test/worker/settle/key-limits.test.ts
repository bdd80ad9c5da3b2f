import { describe, expect, test } from 'vitest'
import { periodOf, type LimitReset } from '../../../src/worker/settle/key-limits.ts'

describe('the period of a limit, in UTC', () => {
  test.each<[reset: LimitReset, now: string, start: string, end: string]>([
    ['daily', '2026-11-22T23:59:59.999Z', '2026-11-22', '2026-11-23'],
    ['daily', '2026-12-31T00:00:00Z', '2026-12-31', '2027-01-01'],
    ['weekly', '2026-11-22T12:00:00Z', '2026-11-16', '2026-11-23'],
    ['weekly', '2026-11-23T00:00:00Z', '2026-11-23', '2026-11-30'],
    ['weekly', '2027-01-01T12:00:00Z', '2026-12-28', '2027-01-04'],
    ['monthly', '2028-02-29T12:00:00Z', '2028-02-01', '2028-03-01'],
    ['monthly', '2026-12-31T23:59:59Z', '2026-12-01', '2027-01-01'],
  ])('%s at %s is from %s to %s', (reset, now, start, end) => {
    expect(periodOf(reset, Date.parse(now))).toEqual({
      start: Date.parse(start),
      end: Date.parse(end),
    })
  })

  test('has no end where nothing is reset', () => {
    expect(periodOf('none', 1)).toEqual({ start: 0, end: null })
  })
})
