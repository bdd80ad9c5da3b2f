import { expect, test } from 'vitest'
import { comparisonSections } from '../../../scripts/bench/comparison-tables.ts'
import { LEDGER_ALONE } from '../../../scripts/bench/ledger-alone.ts'
import { ledgerAloneTable } from '../../../scripts/bench/ledger-alone-table.ts'
import { leastOf, limitsOf, moreCoresTable } from '../../../scripts/bench/more-cores.ts'
import { WRITER } from '../../../scripts/bench/system.ts'
import { LEDGER_KIND, type WindowKind } from '../../../scripts/bench/windows.ts'
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

test('the thread of the ledger counts at what it costs when it is busy, all cores at what the ledger cost beside the workers', () => {
  const beside = reportOf({ workerd: 700, daemon: 40, ledger: 160 })
  const alone = (writer: number, invalid: string | null = null) => ({
    ...system(LEDGER_ALONE, {}),
    windows: {
      [LEDGER_KIND]: [
        windowWith({
          cpuUs: writer + 8,
          cpuUsBy: { [WRITER]: writer, 'other threads': 8 },
          invalid,
        }),
      ],
    },
  })
  const leastWith = (ledger: ReturnType<typeof alone>, name = SYSTEM) =>
    leastOf(limitsOf(report([...beside.systems, ledger]), name, 'whole-64'))
  expect(leastOf(limitsOf(beside, SYSTEM, 'whole-64'))).toBe(6_250)
  expect(leastWith(alone(80))).toBe(12_500)
  expect(leastWith(alone(40))).toBeCloseTo(17_777.8, 1)
  expect(leastWith(alone(80, 'one failed'))).toBe(6_250)
  expect(moreCoresTable(report([...beside.systems, alone(80)]), SYSTEM, 'whole-64')).toMatch(
    /one writer thread, when it is busy +\| 80 +\| 12500 /,
  )
})

test('a system without a ledger process is not bounded by one that was driven alone', () => {
  const ledger = {
    ...system(LEDGER_ALONE, {}),
    windows: { [LEDGER_KIND]: [windowWith({ cpuUsBy: { [WRITER]: 1_000 } })] },
  }
  const measured = report([...reportOf({ workerd: 100 }).systems, ledger])
  expect(leastOf(limitsOf(measured, SYSTEM, 'whole-64'))).toBe(160_000)
})

const CELLS = ['', LEDGER_ALONE, '7000', '1000', '12.3', '80', '70', '0.49', '0 of 1', '']

test('the table of the ledger alone says what was measured, its CPU by thread, and how much of the time it worked', () => {
  const window = windowWith({
    perSecond: 7_000,
    p50Ms: 12.3,
    cpuUs: 80,
    cpuUsBy: { [WRITER]: 70, 'other threads': 10 },
  })
  const measured = report([
    system(SYSTEM, {}),
    { ...system(LEDGER_ALONE, {}), windows: { [LEDGER_KIND]: [window] } },
  ])
  const rows = ledgerAloneTable(measured).split('\n')
  expect(rows).toHaveLength(3)
  expect(rows[2]?.split('|').map((cell) => cell.trim())).toEqual(CELLS)
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
