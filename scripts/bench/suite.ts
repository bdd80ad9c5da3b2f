import { cpus, loadavg } from 'node:os'
import type { Field } from './field.ts'
import type { LoadGenerator } from './load.ts'
import type { Mock } from './mock.ts'
import type { Section } from './page.ts'
import type { Plots } from './plot.ts'
import { memoryOf, type Fresh } from './memory.ts'
import type { MemoryStart, Report, SystemReport } from './report.ts'
import { runAll, type LogLine } from './run.ts'
import type { Skipped } from './system.ts'
import type { Extent } from './windows.ts'

/** One kind of measurement of `npm run bench`. */
export interface Suite {
  /** Its command-line options. */
  readonly options: string
  readonly extent: Extent
  /** Systems that are started first, one at a time, only to measure their memory. */
  readonly memory?: readonly Fresh[]
  /** The fields. Each is started, measured and stopped before the next; the systems of one field share their rounds. */
  readonly fields: readonly (() => Promise<Field>)[]
}

/** How the reports of a suite are shown. */
export interface Exhibit {
  /** The name of the report's file, without extension, and of its block on the page. */
  readonly name: string
  readonly sections: (report: Report) => readonly Section[]
  readonly plots: (report: Report) => Plots
}

/** The inputs of every suite. */
export interface Bench {
  readonly quick: boolean
  readonly mock: Mock
  readonly load: LoadGenerator
  /** The directory for everything that a run writes. */
  readonly scratch: string
  readonly log: LogLine
}

/** Measures all systems of a suite. */
export async function runSuite(
  { extent, memory = [], fields, options }: Suite,
  { quick, load, log }: Bench,
): Promise<Report> {
  const [loadBefore = 0] = loadavg()
  const memories = new Map<string, MemoryStart[]>()
  for (const fresh of memory) {
    log(`memory of ${fresh.name}`)
    try {
      memories.set(fresh.name, await memoryOf(fresh, load))
    } catch (error) {
      log(`not measured: ${String(error)}`)
    }
  }
  const systems: SystemReport[] = []
  const skipped: Skipped[] = []
  for (const start of fields) {
    const field = await start()
    try {
      for (const { name, reason } of field.skipped) log(`skipped ${name}: ${reason}`)
      skipped.push(...field.skipped)
      systems.push(...(await runAll(field.entrants, extent, { load, log }, memories)))
    } finally {
      await field.stop()
    }
  }
  const [loadAfter = 0] = loadavg()
  const [cpu] = cpus()
  const given = [options, quick ? '--quick' : ''].filter(Boolean).join(' ')
  return {
    takenAt: new Date().toISOString(),
    command: ['npm run bench', given].filter(Boolean).join(' -- '),
    machine: { cores: cpus().length, cpu: cpu?.model ?? '', loadBefore, loadAfter },
    systems,
    skipped,
  }
}
