import { spreadOfValid } from './figures.ts'
import { LEDGER_ALONE } from './ledger-alone.ts'
import { REQUESTS_PER_CALL } from './ledger-requests.ts'
import type { Report } from './report.ts'
import { WRITER } from './system.ts'
import { of, systemTable, type Window } from './table.ts'
import { cpu, rate } from './targets.ts'
import { LEDGER_KIND } from './windows.ts'

const SECOND_US = 1_000_000

/** CPU of the ledger's writer thread per request, us; NaN in windows of other systems. */
export function writerUs({ cpuUsBy }: Window): number {
  return cpuUsBy[WRITER] ?? Number.NaN
}

/** The figures of the ledger under load by itself, without workers. */
export function ledgerAloneTable(report: Report): string {
  const alone = report.systems.filter(({ name }) => name === LEDGER_ALONE)
  return systemTable(
    report,
    [
      of('requests/s, measured here', LEDGER_KIND, rate, 0),
      of('calls/s', LEDGER_KIND, (window) => rate(window) / REQUESTS_PER_CALL, 0),
      of('p50 of a call, ms', LEDGER_KIND, ({ p50Ms }) => p50Ms, 1),
      of('CPU of the process per request, us', LEDGER_KIND, cpu, 0),
      of('of its writer thread, us', LEDGER_KIND, writerUs, 0),
      of('of that thread at work', LEDGER_KIND, (window) => busyShare(window), 2),
    ],
    alone,
  )
}

/**
 * The share of time for which the writer thread used CPU; the rest of the time it waited for the disk, its callers or a
 * core.
 */
function busyShare(window: Window): number {
  return (writerUs(window) * rate(window)) / SECOND_US
}

/** CPU of the writer thread per request when the ledger is saturated, us; undefined when not measured. */
export function busyWriterUs(report: Report): number | undefined {
  const alone = report.systems.find(({ name }) => name === LEDGER_ALONE)
  return spreadOfValid(alone?.windows[LEDGER_KIND] ?? [], writerUs)?.median
}
