import type { Report } from './report.ts'
import { LEDGER } from './system.ts'
import { markdownTable } from './table.ts'
import { cpu, reader } from './targets.ts'

/** The host that is computed for. */
const CORES = 16

/** What bounds the requests/s of one host, from the CPU that its parts take for a request. */
export interface Limit {
  readonly title: string
  /** CPU of a request that counts against it, us; undefined where the part was not measured. */
  readonly us: number | undefined
  /** How many cores can do that work at a time. */
  readonly cores: number
}

/** Each limit of a system, by the parts of its CPU at 64 connections. */
export function limitsOf(report: Report, system: string): readonly Limit[] {
  const part = (name: string) =>
    reader(report, 'whole-64', ({ cpuUsBy }) => cpuUsBy[name] ?? Number.NaN)(system)
  return [
    { title: 'all cores', us: reader(report, 'whole-64', cpu)(system), cores: CORES },
    { title: 'one thread of the daemon', us: part('daemon'), cores: 1 },
    { title: 'one thread of the ledger', us: part(LEDGER), cores: 1 },
  ]
}

const perSecond = ({ us, cores }: Limit) =>
  us === undefined || Number.isNaN(us) ? undefined : (cores * 1_000_000) / us

/** Requests/s that no limit of a system lets it exceed; undefined where nothing was measured. */
export function leastOf(limits: readonly Limit[]): number | undefined {
  const rates = limits.map(perSecond).filter((rate) => rate !== undefined)
  return rates.length === 0 ? undefined : Math.min(...rates)
}

/** What 16 cores give by each limit, as a table in Markdown. This is arithmetic, not a measurement. */
export function moreCoresTable(report: Report, system: string): string {
  const rows = limitsOf(report, system).map((limit) => [
    limit.title,
    limit.us?.toFixed(0) ?? '-',
    perSecond(limit)?.toFixed(0) ?? '-',
  ])
  return markdownTable(
    [`${system}, computed for ${CORES} cores`, 'CPU per request, us', 'requests/s'],
    rows,
  )
}
