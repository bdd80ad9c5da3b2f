import { describe, expect, test } from 'vitest'
import {
  errorCurves,
  historySchema,
  requestCurves,
  spendCurves,
  timeCurves,
  timesOf,
} from '../../../src/browser/console/curves.ts'

const EMPTY = {
  requests: 0,
  errors: {},
  first_delta_ms: null,
  duration_ms: null,
  prompt_tokens: 0,
  completion_tokens: 0,
  cost_eur: '0.00',
  failovers: 0,
}

const history = historySchema.parse({
  step_seconds: 60,
  data: [
    {
      ...EMPTY,
      at: '2026-11-22T12:00:00.000Z',
      requests: 10,
      errors: { '429 rate_limit_exceeded': 3, '500 internal': 1, '404 not_found': 2 },
      duration_ms: { p50: 20, p95: 40, p99: 1400 },
      cost_eur: '0.25',
    },
    { ...EMPTY, at: '2026-11-22T12:01:00.000Z', errors: { '400 a': 1, '400 b': 1, '400 c': 1 } },
  ],
})

describe('the curves of a history', () => {
  test('have a value for every step, and what they come to', () => {
    expect(timesOf(history)).toEqual([1795348800, 1795348860])
    expect(requestCurves(history).map(({ values, total }) => [values, total])).toEqual([
      [[10, 0], '10'],
      [[5, 3], '8'],
      [[1, 0], '1'],
    ])
    expect(spendCurves(history)[0]).toMatchObject({ values: [0.25, 0], total: '€ 0.25' })
  })

  test('of times leave out what was not timed, and tell the newest', () => {
    const [median, , last] = timeCurves(history, 'duration_ms')
    expect(median).toMatchObject({ label: 'median', values: [20, null], total: '20 ms' })
    expect(last).toMatchObject({ label: '99 %', total: '1.4 s' })
    expect(timeCurves(history, 'first_delta_ms').map(({ total }) => total)).toEqual(['–', '–', '–'])
  })

  test('of errors are those of the most frequent codes, and one of all others', () => {
    const curves = errorCurves(history)
    expect(curves.map(({ label, total }) => [label, total])).toEqual([
      ['429 rate_limit_exceeded', '3'],
      ['404 not_found', '2'],
      ['500 internal', '1'],
      ['400 a', '1'],
      ['others', '2'],
    ])
    const all = curves
      .flatMap(({ values }) => values)
      .reduce((one, other) => (one ?? 0) + (other ?? 0), 0)
    expect(all).toBe(9)
  })
})
