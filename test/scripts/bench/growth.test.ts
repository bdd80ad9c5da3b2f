import { describe, expect, it } from 'vitest'
import { growthPoints, growthTable } from '../../../scripts/bench/growth.ts'
import { report, system, windowWith } from './reports.ts'

describe('the growth of the benchmark', () => {
  it('has one thing grow at a time, up to 10,000 customers and a million rows', () => {
    const [base, ...points] = growthPoints(false)
    const before = new Map(Object.entries(base ?? {}))
    const grown = points.map((point) =>
      Object.entries(point).filter(([name, size]) => size !== before.get(name)),
    )
    expect(grown).toEqual([
      [['furtherRoutes', 1_000]],
      [['furtherRoutes', 10_000]],
      [['customers', 10_000]],
      [['ledgerRows', 1_000_000]],
      [['tools', 1]],
      [['tools', 10]],
    ])
  })

  it('shows a point in a row, its windows as median, lowest and highest', () => {
    const rates = [{ perSecond: 500 }, { perSecond: 9_999, invalid: 'status 500' }]
    const windows = {
      'whole-1': [2, 5, 3].map((p50Ms) => windowWith({ p50Ms })),
      'whole-16': rates.map(windowWith),
    }
    const table = growthTable(report([{ ...system('a point', {}), windows }]))
    expect(table).toMatch(
      /\| a point \| 3\.00 \(2\.00-5\.00\) \| 500 +\| 100 +\| 50 +\| 1 of 5 +\|/,
    )
  })
})
