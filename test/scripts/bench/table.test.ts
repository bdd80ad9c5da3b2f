import { describe, expect, it } from 'vitest'
import { comparisonSections } from '../../../scripts/bench/comparison-tables.ts'
import type { SystemReport } from '../../../scripts/bench/report.ts'
import {
  added,
  cpuOfFloor,
  markdownTable,
  of,
  partsOf,
  spreadText,
  systemTable,
} from '../../../scripts/bench/table.ts'
import { COMPARISON_TARGETS } from '../../../scripts/bench/comparison-targets.ts'
import { checkTargets, targetTable } from '../../../scripts/bench/targets.ts'
import { WORKERS } from '../../../scripts/bench/workers.ts'
import { report, system, windowWith } from './reports.ts'

describe('a table of the benchmark', () => {
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

  it('has a row for each system, and subtracts the direct calls of the same round', () => {
    const figures = [added('p50 added', 'whole-1', ({ p50Ms }) => p50Ms)]
    const systems = [system('direct', {}), system('router', { p50Ms: 4.5 })]
    const table = systemTable(report(systems), figures)
    expect(table).toMatch(/\| direct \| 0\.00 +\| 0 of 3/)
    expect(table).toMatch(/\| router \| 3\.50 +\| 0 of 3/)
  })

  it('shows CPU as a multiple of the floor in the same round, and by group of processes', () => {
    const router = system('router', { cpuUs: 250, cpuUsBy: { workerd: 200, daemon: 50 } })
    const both = report([system('floor', {}), router])
    const figures = [cpuOfFloor('of the floor', 'whole-64'), ...partsOf(both, 'whole-64')]
    expect(systemTable(both, figures)).toBe(
      markdownTable(
        ['', 'of the floor', 'workerd', 'daemon', 'invalid windows'],
        [
          ['floor', '1.00', '100', '-', '0 of 3'],
          ['router', '2.50', '200', '50', '0 of 3'],
        ],
      ),
    )
  })

  it('counts invalid windows and leaves them out of the figures', () => {
    const failed = system('router', { invalid: '1 failed: status 500' })
    const figures = [of('requests/s', 'whole-64', ({ perSecond }) => perSecond, 0)]
    expect(systemTable(report([failed]), figures)).toMatch(/\| router \| - +\| 3 of 3/)
  })
})

describe('the tables of a comparison', () => {
  const streams = (name: string): SystemReport => ({
    ...system(name, {}),
    windows: {
      'streams-512': [
        windowWith({ framesPerSecond: 25_000, cpuUs: 40, gapP50Ms: 39, gapP99Ms: 118 }),
      ],
    },
  })
  const tablesOf = (title: string, systems: readonly SystemReport[]) =>
    comparisonSections(report(systems))
      .filter((section) => section.title === title)
      .flatMap(({ tables }) => tables)
      .join('\n')

  it('have a row for each number of streams, with what was sent and the gaps between frames', () => {
    const table = tablesOf('Streams', [streams('floor'), streams('router-pinned')])
    expect(table).toMatch(/\| router-pinned \| 512 +\| 25600 +\| 25000 +\| 40 +\| 1\.00/)
    expect(table).toMatch(/\| gap p50, ms \| gap p99, ms \|/)
    expect(table).toMatch(/\| 39 +\| 118 +\| 0 of 1/)
  })

  it('have a row for each endpoint, beside the chat endpoint of the same router', () => {
    const systems = [system('router', {}), system('embeddings', { cpuUs: 80 })]
    expect(tablesOf('Endpoints', systems)).toMatch(/\| embeddings \|.*\| 80 +\| 0\.80/)
    expect(tablesOf('Whole answers', systems)).not.toContain('embeddings')
  })
})

describe('the tables of several workers', () => {
  it('show what each kind of process has used of the CPU, and nothing where there is none', () => {
    const cpuUsBy = { workerd: 3_000, daemon: 500, postgresql: 1_500 }
    const router = system('postgres, 2 workerd', { cpuUs: 5_000, cpuUsBy })
    const [section] = WORKERS.sections(report([system('floor', {}), router]))
    const parts = section?.tables.at(-1)
    expect(parts).toMatch(/\| floor +\| 100 +\| 1\.00 +\| 100 +\| - +\| - /)
    expect(parts).toMatch(/\| postgres, 2 workerd \| 5000 +\| 50\.00 +\| 3000 +\| 500 +\| 1500 /)
  })
})

describe('the targets of several workers', () => {
  it('hold the most workers on one ledger against the floor and against Portkey, and only them against the CPU of the ledger', () => {
    const [section] = WORKERS.sections(
      report([
        system('floor', { perSecond: 4_000 }),
        system('sqlite, 1 workerd', { perSecond: 1_500, cpuUsBy: { workerd: 400, ledger: 50 } }),
        system('sqlite, 2 workerd', { perSecond: 2_000, cpuUsBy: { workerd: 450, ledger: 90 } }),
        system('postgres, 2 workerd', { perSecond: 9_000 }),
        system('portkey-node', { perSecond: 2_500, cpuUsBy: { node: 400 } }),
      ]),
    )
    const targets = section?.tables[0]
    expect(targets).toMatch(/of the floor +\| 0\.50 +\| at least 0\.4 +\| met/)
    expect(targets).toMatch(/of Portkey on Node +\| 0\.80 +\| at least 1 +\| \*\*not met\*\*/)
    expect(targets).toMatch(/CPU per request of the ledger, us +\| 90\.00 +\| at most 60/)
  })
})

describe('the targets of the benchmark', () => {
  const resultOf = (title: string, systems: readonly SystemReport[]) =>
    checkTargets(report(systems), COMPARISON_TARGETS).find((target) => target.title === title)

  it('compare the router with the floor', () => {
    const floor = system('floor', {})
    const title = 'requests/s at 64, of the floor'
    const enough = resultOf(title, [floor, system('router', { perSecond: 400 })])
    expect(enough).toMatchObject({ measured: 0.4, met: true, bound: 'at least 0.4', ofBound: 1 })
    const less = resultOf(title, [floor, system('router', { perSecond: 399 })])
    expect(less).toMatchObject({ measured: 0.399, met: false })
  })

  it('do not count as met where they were not measured', () => {
    const result = resultOf('requests/s at 64, of Portkey on Node', [system('router', {})])
    expect(result).toMatchObject({ measured: undefined, met: false, ofBound: undefined })
  })

  it('compare memory per open stream, as the median of the starts', () => {
    const start = { idleMib: 250, servedMib: 320, openMib: 400, perStreamKib: 0 }
    const memory = (...perStream: readonly number[]) => ({
      starts: perStream.map((perStreamKib) => ({ ...start, perStreamKib })),
      afterMib: 500,
    })
    const systems = [system('floor', {}, memory(90, 80, 70)), system('router', {}, memory(240))]
    expect(resultOf('memory per open stream, of the floor', systems)).toMatchObject({
      measured: 3,
      met: false,
      ofBound: 1.5,
    })
  })

  it('ask for little memory before any load, and show what is taken after it without asking for anything', () => {
    const start = { idleMib: 250, servedMib: 320, openMib: 400, perStreamKib: 0 }
    const router = system('router', {}, { starts: [start], afterMib: 500 })
    const idle = 'memory of worker and daemon, idle 5 s after start, MiB'
    expect(resultOf(idle, [router])).toMatchObject({ measured: 250, met: true })
    const served = 'the same, idle after 1,000 streams, MiB'
    expect(resultOf(served, [router])).toMatchObject({ measured: 320, ofBound: undefined })
    expect(targetTable(report([router]), COMPARISON_TARGETS)).toMatch(
      /\| the same, idle after 1,000 streams, MiB +\| 320 +\| no target +\| - +\|/,
    )
    expect(targetTable(report([]), COMPARISON_TARGETS)).toMatch(/no target +\| not measured/)
  })

  it('compare two systems round by round', () => {
    const withRates = (name: string, rates: readonly number[]) => ({
      ...system(name, {}),
      windows: { 'whole-64': rates.map((perSecond) => windowWith({ perSecond })) },
    })
    const systems = [withRates('floor', [100, 200, 1_000]), withRates('router', [50, 400, 300])]
    expect(resultOf('requests/s at 64, of the floor', systems)).toMatchObject({ measured: 0.5 })
  })
})
