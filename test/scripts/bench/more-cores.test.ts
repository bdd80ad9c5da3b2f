import { expect, test } from 'vitest'
import { leastOf, limitsOf, moreCoresTable } from '../../../scripts/bench/more-cores.ts'
import { report, system } from './reports.ts'

const SYSTEM = 'sqlite, 2 workerd'

/** A report in which the parts took so much CPU for a request, us. */
function reportOf(cpuUsBy: Readonly<Record<string, number>>) {
  const cpuUs = Object.values(cpuUsBy).reduce((sum, us) => sum + us, 0)
  return report([system(SYSTEM, { cpuUs, cpuUsBy })])
}

test('a host gives what its cores together give, if neither daemon nor ledger gives less', () => {
  const measured = reportOf({ workerd: 700, daemon: 40, ledger: 60 })
  expect(leastOf(limitsOf(measured, SYSTEM))).toBeCloseTo(16_666.7, 1)
  expect(leastOf(limitsOf(reportOf({ workerd: 10, daemon: 40, ledger: 80 }), SYSTEM))).toBe(12_500)
  expect(leastOf(limitsOf(reportOf({ workerd: 10, daemon: 100, ledger: 80 }), SYSTEM))).toBe(10_000)
  expect(moreCoresTable(measured, SYSTEM).split('\n')).toHaveLength(5)
})

test('nothing is computed for a system that was not measured', () => {
  expect(leastOf(limitsOf(reportOf({ workerd: 1 }), 'another'))).toBeUndefined()
})
