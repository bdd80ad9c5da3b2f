import { describe, expect, test } from 'vitest'
import { ago, count, duration, euros, percent } from '../../../src/browser/console/format.ts'
import { readPlace } from '../../../src/browser/console/place.ts'

const NOW = Date.parse('2026-11-22T12:00:00Z')

describe('what the console shows', () => {
  test('are counts that fit, amounts that do not vanish, and times with a unit', () => {
    expect([0, 7, 1204, 12_345, 2_500_000, 0.25].map(count)).toEqual([
      '0',
      '7',
      '1,204',
      '12.3K',
      '2.5M',
      '0.25',
    ])
    expect(['0', '12.5', '0.0000602', '-3'].map(euros)).toEqual([
      '€ 0.00',
      '€ 12.50',
      '€ 0.0000602',
      '€ -3.00',
    ])
    expect([12, 999, 1200, 240_000].map(duration)).toEqual(['12 ms', '999 ms', '1.2 s', '4 min'])
    expect([percent(1, 3), percent(0, 0)]).toEqual(['33.3 %', '–'])
  })

  test('are ages of both directions, and nothing for what is no time', () => {
    const at = (text: string | null) => ago(text, NOW)
    expect(at('2026-11-22T11:59:58Z')).toBe('2 s ago')
    expect(at('2026-11-22T12:30:00Z')).toBe('in 30 min')
    expect(at('2026-11-20T12:00:00Z')).toBe('2 d ago')
    expect(at('2026-11-22T12:00:00Z')).toBe('now')
    expect([at(null), at('never')]).toEqual(['–', '–'])
  })
})

describe('the place in the console', () => {
  test('is read from the fragment, whatever it contains', () => {
    expect(readPlace('#/customers/abc?after=x')).toMatchObject({ view: 'customers', id: 'abc' })
    expect(readPlace('#/customers/abc?after=x').query.get('after')).toBe('x')
    expect(readPlace('')).toMatchObject({ view: '', id: undefined })
    expect(readPlace('#/requests/%E0%A4%A')).toMatchObject({ id: '%E0%A4%A' })
    expect(readPlace('#/requests/a%2Fb')).toMatchObject({ id: 'a/b' })
  })
})
