import { describe, expect, it } from 'vitest'
import { parseRetryAfter } from '../../../src/worker/provider/retry-after.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const wait = (headers: Record<string, string>) => parseRetryAfter(new Headers(headers), NOW)

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['1', 1_000],
    ['1.5', 1_500],
    ['0.0004', 1],
    [' 7 ', 7_000],
    ['Fri, 20 Nov 2026 12:00:30 GMT', 30_000],
    ['Friday, 20-Nov-26 12:00:30 GMT', 30_000],
    ['Fri Nov 20 12:00:30 2026', 30_000],
    ['Fri, 20 Nov 2026 12:00:00 GMT', 0],
  ])('reads "%s" as %d ms', (value, expected) => {
    expect(wait({ 'retry-after': value })).toBe(expected)
  })

  it.each([
    '60',
    '61',
    '86400',
    '1e3'.replace('e3', '000'),
    'Sat, 21 Nov 2026 12:00:00 GMT',
    '9'.repeat(400),
  ])('takes "%s" for a minute at most', (value) => {
    expect(wait({ 'retry-after': value })).toBe(60_000)
  })

  it.each([
    '',
    'soon',
    'NaN',
    'Infinity',
    '-5',
    '+5',
    '1e3',
    '0x10',
    '5, 6',
    '5s',
    '2026-11-20T12:00:30Z',
    'Fri, 20 Nov 2026 11:59:59 GMT',
    'Fri, 99 Nov 2026 12:00:30 GMT',
    'Friday',
    'Sunday, always',
  ])('ignores "%s"', (value) => {
    expect(wait({ 'retry-after': value })).toBeUndefined()
  })

  it('knows nothing without the header', () => {
    expect(wait({})).toBeUndefined()
  })

  it('prefers retry-after-ms, unless it is garbage', () => {
    expect(wait({ 'retry-after-ms': '250.5', 'retry-after': '9' })).toBe(251)
    expect(wait({ 'retry-after-ms': '120000' })).toBe(60_000)
    expect(wait({ 'retry-after-ms': 'x', 'retry-after': '9' })).toBe(9_000)
    expect(wait({ 'retry-after-ms': '-1' })).toBeUndefined()
  })
})
