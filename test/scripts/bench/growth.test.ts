import { describe, expect, it } from 'vitest'
import { growthPoints, growthTable } from '../../../scripts/bench/growth.ts'
import type { Report, SystemReport } from '../../../scripts/bench/report.ts'

type Window = SystemReport['windows'][string][number]

const window = (change: Partial<Window>): Window => ({
  perSecond: 500,
  p50Ms: 2,
  p99Ms: 4,
  firstDeltaP50Ms: Number.NaN,
  framesPerSecond: 0,
  cpuUs: 900,
  cpuUsBy: {},
  residentMib: 300,
  invalid: null,
  ...change,
})

function report(windows: SystemReport['windows']): Report {
  const machine = { cores: 2, cpu: 'one', loadBefore: 0, loadAfter: 0 }
  const system = { name: 'a point', windows, memory: null, sizesMs: {} }
  return { takenAt: '', command: '', machine, systems: [system], skipped: [] }
}

describe('the growth of the benchmark', () => {
  it('has one thing grow at a time, up to 10,000 customers and a million rows', () => {
    const [base, ...points] = growthPoints(false)
    const grown = points.map((point) =>
      Object.entries(point).filter(([name, size]) => size !== Object(base)[name]),
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
    const table = growthTable(
      report({
        'whole-1': [window({ p50Ms: 2 }), window({ p50Ms: 5 }), window({ p50Ms: 3 })],
        'whole-16': [window({}), window({ perSecond: 9_999, invalid: 'status 500' }), window({})],
      }),
    )
    expect(table).toMatch(
      /\| a point \| 3\.00 \(2\.00-5\.00\) \| 500 +\| 900 +\| 300 +\| 1 of 6 +\|/,
    )
  })
})
