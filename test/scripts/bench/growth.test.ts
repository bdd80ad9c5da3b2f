import { describe, expect, it } from 'vitest'
import { GROWTH, growthPoints } from '../../../scripts/bench/growth.ts'
import { report, system, windowWith } from './reports.ts'

describe('the growth of the benchmark', () => {
  it('has one thing grow at a time, up to 10,000 customers and ten million rows', () => {
    const [base, ...points] = growthPoints(false)
    const before = new Map(Object.entries(base ?? {}))
    const grown = points.map((point) =>
      Object.entries(point).filter(([name, size]) => size !== before.get(name)),
    )
    expect(grown).toEqual([
      [['furtherRoutes', 1_000]],
      [['furtherRoutes', 10_000]],
      [['customers', 100]],
      [['customers', 10_000]],
      [['ledgerRows', 10_000_000]],
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
    const [section] = GROWTH.sections(report([{ ...system('a point', {}), windows }]))
    expect(section?.tables.at(-1)).toMatch(
      /\| a point \| 3\.00 \(2\.00-5\.00\) \| 500 +\| 100 +\| 50 +\| 1 of 5 +\|/,
    )
  })

  it('is flat where a point costs at most 15 percent more than the one it is compared with', () => {
    const point = (customers: string, cpuUs: number) => ({
      ...system(`10 routes, ${customers}, 0 rows, 0 tools`, {}),
      windows: { 'whole-16': [windowWith({ cpuUs })] },
    })
    const [section] = GROWTH.sections(
      report([
        point('1 customer', 10),
        point('100 customers', 100),
        point('10,000 customers', 116),
      ]),
    )
    expect(section?.tables[0]).toMatch(
      /\| CPU with 10,000 customers, of 100 +\| 1\.16 +\| at most 1\.15 \| \*\*not met\*\*/,
    )
  })
})
