import { busyWriterUs } from './ledger-alone-table.ts'
import type { Report } from './report.ts'
import { LEDGER } from './system.ts'
import { markdownTable } from './table.ts'
import { cpu, reader } from './targets.ts'
import type { WindowKind } from './windows.ts'

/** The number of cores of the computed host, with one worker and one carrier thread per core. */
const CORES = 16

/** An upper limit on the requests/s or frames/s of one host, from the CPU that one of its parts needs for each. */
export interface Limit {
  readonly title: string
  /** CPU of the part per request or frame, us; undefined when the part was not measured. */
  readonly us: number | undefined
  /** The number of cores that can do that work in parallel. */
  readonly cores: number
}

/** The limits of a system, from the CPU of its parts in windows of this kind. */
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
 * The limit by the ledger's single writer thread. The busier a ledger, the less CPU it needs per request, so the limit
 * uses its cost when saturated, driven alone. Without such a window, it uses the CPU of the whole ledger process beside
 * the workers, which is more.
 * @param besideUs CPU of the ledger process per request in the same windows as the other parts; undefined when there is
 *   no ledger process
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

/** The lowest of the limits, per second; undefined when nothing was measured. */
export function leastOf(limits: readonly Limit[]): number | undefined {
  const rates = limits.map(perSecond).filter((rate) => rate !== undefined)
  return rates.length === 0 ? undefined : Math.min(...rates)
}

/** The rate that each limit allows on 16 cores, as a Markdown table. Computed, not measured. */
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
