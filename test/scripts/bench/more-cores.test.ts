import { expect, test } from 'vitest'
import { comparisonSections } from '../../../scripts/bench/comparison-tables.ts'
import { leastOf, limitsOf, moreCoresTable } from '../../../scripts/bench/more-cores.ts'
import type { WindowKind } from '../../../scripts/bench/windows.ts'
import { report, system, windowWith } from './reports.ts'

const SYSTEM = 'sqlite, 2 workerd'

/** A report in which the parts took so much CPU for a request, us. */
function reportOf(cpuUsBy: Readonly<Record<string, number>>) {
  const cpuUs = Object.values(cpuUsBy).reduce((sum, us) => sum + us, 0)
  return report([system(SYSTEM, { cpuUs, cpuUsBy })])
}

const least = (cpuUsBy: Readonly<Record<string, number>>) =>
  leastOf(limitsOf(reportOf(cpuUsBy), SYSTEM, 'whole-64'))

test('a host gives what its cores together give, if the one thread of the ledger does not give less', () => {
  expect(least({ workerd: 700, daemon: 40, ledger: 20 })).toBeCloseTo(21_052.6, 1)
  expect(least({ workerd: 700, daemon: 40, ledger: 80 })).toBe(12_500)
})

test('the daemon carries in as many threads as there are workers, and bounds a host no more than they do', () => {
  expect(least({ workerd: 100, daemon: 1_000 })).toBeCloseTo(14_545.5, 1)
  const measured = reportOf({ workerd: 100, daemon: 1_000 })
  const limits = limitsOf(measured, SYSTEM, 'whole-64')
  expect(limits.find(({ title }) => title === '16 threads of the daemon')).toMatchObject({
    us: 1_000,
    cores: 16,
  })
  expect(moreCoresTable(measured, SYSTEM, 'whole-64').split('\n')).toHaveLength(5)
})

test('frames are computed from pinned streams, and held against their goal', () => {
  const frames: WindowKind = 'streams-512'
  const measured = report([
    {
      ...system('router-pinned', {}),
      windows: { [frames]: [windowWith({ cpuUs: 64, cpuUsBy: { workerd: 30, daemon: 30 } })] },
    },
  ])
  expect(leastOf(limitsOf(measured, 'router-pinned', frames))).toBe(250_000)
  const text = JSON.stringify(comparisonSections(measured))
  expect(text).toMatch(/on 16 cores, computed below +\| 250000 +\| at least 200000 +\| met/)
  expect(text).toContain('| CPU per frame, us | frames/s |')
})

test('nothing is computed for a system that was not measured', () => {
  expect(leastOf(limitsOf(reportOf({ workerd: 1 }), 'another', 'whole-64'))).toBeUndefined()
})
