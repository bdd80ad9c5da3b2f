import { describe, expect, it } from 'vitest'
import { barChart } from '../../../scripts/bench/plot.ts'
import type { SystemReport } from '../../../scripts/bench/report.ts'
import { figureTable, markdownTable, spreadText } from '../../../scripts/bench/table.ts'
import { checkTargets } from '../../../scripts/bench/targets.ts'
import { workersTable } from '../../../scripts/bench/workers.ts'
import { report, system } from './reports.ts'

describe('the table of the benchmark', () => {
  it('pads its columns to one width', () => {
    expect(markdownTable(['', 'a'], [['row', '12345']])).toBe(
      ['|     | a     |', '| --- | ----- |', '| row | 12345 |'].join('\n'),
    )
  })

  it('shows lowest and highest only where windows differ', () => {
    expect(spreadText({ median: 2, min: 1, max: 3 }, 1)).toBe('2.0 (1.0-3.0)')
    expect(spreadText({ median: 2, min: 2, max: 2 }, 0)).toBe('2')
    expect(spreadText(undefined, 0)).toBe('-')
  })

  it('subtracts the direct calls of the same round', () => {
    const table = figureTable(report([system('direct', {}), system('router', { p50Ms: 4.5 })]))
    expect(table).toMatch(/p50 added over direct at 1, ms\s+\| 0\.00\s+\| 3\.50/)
  })

  it('counts invalid windows and leaves them out of the figures', () => {
    const table = figureTable(report([system('router', { invalid: '1 failed: status 500' })]))
    expect(table).toMatch(/requests\/s at 64\s+\| - /)
    expect(table).toMatch(/invalid windows\s+\| 3 of 3/)
  })
})

describe('the table of several workers', () => {
  it('shows what each kind of process has used of the CPU, and nothing where there is none', () => {
    const cpuUsBy = { workerd: 3_000, daemon: 500, postgresql: 1_500 }
    const router = system('postgres, 2 workerd', { cpuUs: 5_000, cpuUsBy })
    const table = workersTable(report([system('floor', {}), router]))
    expect(table).toMatch(/CPU per request at 64, us +\| 100 +\| 5000 /)
    expect(table).toMatch(/- of it workerd +\| 100 +\| 3000 /)
    expect(table).toMatch(/- of it postgresql +\| - +\| 1500 /)
  })
})

describe('the targets of the benchmark', () => {
  const resultOf = (title: string, systems: readonly SystemReport[]) =>
    checkTargets(report(systems)).find((target) => target.title === title)

  it('compares the router with the floor', () => {
    const floor = system('floor', {})
    const title = 'requests/s at 64, of the floor'
    const half = resultOf(title, [floor, system('router', { perSecond: 500 })])
    expect(half).toMatchObject({ measured: 0.5, met: true, bound: 'at least 0.5' })
    const less = resultOf(title, [floor, system('router', { perSecond: 499 })])
    expect(less).toMatchObject({ measured: 0.499, met: false })
  })

  it('does not call a target met that was not measured', () => {
    const result = resultOf('requests/s at 64, of Portkey on Node', [system('router', {})])
    expect(result).toMatchObject({ measured: undefined, met: false })
  })

  it('compares memory per open stream', () => {
    const memory = { idleMib: 1, openMib: 2, afterMib: 2 }
    const systems = [
      system('floor', {}, { ...memory, perStreamKib: 80 }),
      system('router', {}, { ...memory, perStreamKib: 240 }),
    ]
    expect(resultOf('memory per open stream, of the floor', systems)).toMatchObject({
      measured: 3,
      met: false,
    })
  })
})

describe('the plots of the benchmark', () => {
  it('draws a bar and a label for each system', () => {
    const svg = barChart('Frames', [
      { name: 'floor', spread: { median: 10, min: 8, max: 12 } },
      { name: 'router', spread: { median: 5, min: 5, max: 5 } },
    ])
    expect(svg.match(/<rect x=/g)).toHaveLength(2)
    expect(svg).toContain('>floor</text>')
    expect(svg).toContain('>5.00</text>')
  })
})
