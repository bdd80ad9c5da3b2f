import { busyWriterUs } from './ledger-alone-table.ts'
import type { Report } from './report.ts'
import { LEDGER } from './system.ts'
import { markdownTable } from './table.ts'
import { cpu, reader } from './targets.ts'
import type { WindowKind } from './windows.ts'

/** The host that is computed for: a worker and a carrier of the daemon for each core. */
const CORES = 16

/** What bounds the requests/s or frames/s of one host, from the CPU that its parts take for each. */
export interface Limit {
  readonly title: string
  /** CPU that counts against it, us; undefined where the part was not measured. */
  readonly us: number | undefined
  /** How many cores can do that work at a time. */
  readonly cores: number
}

/** Each limit of a system, by the parts of its CPU in windows of that kind. */
export function limitsOf(report: Report, system: string, kind: WindowKind): readonly Limit[] {
  const part = (name: string) =>
    reader(report, kind, ({ cpuUsBy }) => cpuUsBy[name] ?? Number.NaN)(system)
  const parts = [
    { title: `${CORES} threads of workers`, us: part('workerd'), cores: CORES },
    { title: `${CORES} threads of the daemon`, us: part('daemon'), cores: CORES },
    writerLimit(report, part(LEDGER)),
  ]
  return [
    { title: 'all cores', us: reader(report, kind, cpu)(system), cores: CORES },
    ...parts.filter(({ us }) => us !== undefined && !Number.isNaN(us)),
  ]
}

/**
 * A ledger costs the less the busier it is, so its one writer thread is full at what it costs then: driven alone. A report
 * that has no such window takes the whole process at what it cost beside the workers, which is more.
 * @param besideUs CPU of the ledger process per request in the same windows as the other parts; undefined: it has none
 */
function writerLimit(report: Report, besideUs: number | undefined): Limit {
  const busyUs = busyWriterUs(report)
  const hasLedger = besideUs !== undefined && !Number.isNaN(besideUs)
  return hasLedger && busyUs !== undefined
    ? { title: "the ledger's one writer thread, when it is busy", us: busyUs, cores: 1 }
    : { title: 'one thread of the ledger', us: besideUs, cores: 1 }
}

const perSecond = ({ us, cores }: Limit) =>
  us === undefined ? undefined : (cores * 1_000_000) / us

/** As many a second as no limit of a system lets it exceed; undefined where nothing was measured. */
export function leastOf(limits: readonly Limit[]): number | undefined {
  const rates = limits.map(perSecond).filter((rate) => rate !== undefined)
  return rates.length === 0 ? undefined : Math.min(...rates)
}

/** What 16 cores give by each limit, as a table in Markdown. This is arithmetic, not a measurement. */
export function moreCoresTable(
  report: Report,
  system: string,
  kind: WindowKind,
  unit: 'request' | 'frame' = 'request',
): string {
  const rows = limitsOf(report, system, kind).map((limit) => [
    limit.title,
    limit.us?.toFixed(0) ?? '-',
    perSecond(limit)?.toFixed(0) ?? '-',
  ])
  return markdownTable(
    [`${system}, computed for ${CORES} cores`, `CPU per ${unit}, us`, `${unit}s/s`],
    rows,
  )
}
