import { setTimeout as delay } from 'node:timers/promises'
import type { LoadGenerator } from './load.ts'
import { measure, type Sample, type WindowPlan } from './measure.ts'
import { residentMib } from './processes.ts'
import type { MemoryReport, SystemReport } from './report.ts'
import type { System } from './system.ts'
import {
  FIRST_STREAMS,
  FIRST_TOUCH,
  MEMORY_STARTS,
  OPEN,
  OPEN_STREAMS,
  SIZES,
  windowPlan,
  type Extent,
  type WindowKind,
} from './windows.ts'

/** A system of a run, and the parts of the run that apply to it. */
export interface Entrant {
  readonly system: System
  readonly warmUp: readonly WindowPlan[]
  /** Whether memory is measured; the same processes may be in the table twice. */
  readonly memory: boolean
  /** Starts another instance of the same, for its memory alone. */
  readonly again?: () => Promise<System>
  /** The windows that it is measured in, of those of the run. */
  readonly kinds: readonly WindowKind[]
  /** Whether it is measured with large prompts and lines. */
  readonly sizes: boolean
  /** Tools in every request of its rounds. */
  readonly tools: readonly unknown[]
}

export type LogLine = (line: string) => void

/** Measures all entrants: warm-up, memory, interleaved rounds, large bodies, memory again. */
export async function runAll(
  entrants: readonly Entrant[],
  extent: Extent,
  load: LoadGenerator,
  log: LogLine,
): Promise<SystemReport[]> {
  const memories = new Map<string, MemoryReport>()
  for (const { system, memory, again, warmUp, tools } of entrants) {
    log(`warming up ${system.name}`)
    if (memory && Object.keys(system.processes()).length > 0)
      memories.set(system.name, await memoryOf(system, again, load))
    for (const plan of warmUp) await measure(system, { ...plan, tools }, load)
  }
  const windows = await runRounds(entrants, extent, load, log)
  const sizes = new Map<string, Record<string, number>>()
  for (const { system, sizes: measured } of entrants) {
    if (measured) sizes.set(system.name, await runSizes(system, load, log))
  }
  await delay(2_000)
  return entrants.map(({ system }) => {
    const memory = memories.get(system.name)
    return {
      name: system.name,
      windows: windows.get(system.name) ?? {},
      memory:
        memory === undefined ? null : { ...memory, afterMib: residentMib(system.processes()) },
      sizesMs: sizes.get(system.name) ?? {},
    }
  })
}

/** Every round goes through all systems, so that other load on the machine affects all of them. */
async function runRounds(
  entrants: readonly Entrant[],
  extent: Extent,
  load: LoadGenerator,
  log: LogLine,
): Promise<Map<string, Record<string, Sample[]>>> {
  const found = new Map<string, Record<string, Sample[]>>()
  const width = Math.max(...entrants.map(({ system }) => system.name.length))
  for (let round = 1; round <= extent.rounds; round += 1) {
    for (const kind of extent.kinds) {
      for (const { system, kinds: own, tools } of entrants) {
        if (!own.includes(kind)) continue
        const sample = await measure(system, { ...windowPlan(kind, extent), tools }, load)
        const kinds = found.get(system.name) ?? {}
        found.set(system.name, { ...kinds, [kind]: [...(kinds[kind] ?? []), sample] })
        log(`round ${round}  ${kind.padEnd(12)} ${system.name.padEnd(width)}  ${inBrief(sample)}`)
      }
    }
  }
  return found
}

function inBrief(sample: Sample): string {
  if (sample.invalid !== null) return `INVALID: ${sample.invalid}`
  const rate = sample.framesPerSecond > 0 ? sample.framesPerSecond : sample.perSecond
  return `${rate.toFixed(0)}/s, ${sample.cpuUs.toFixed(0)} us CPU each`
}

/**
 * What a system takes in the start whose streams take the median: how much one of V8's heaps grows while they open depends on when
 * it collected garbage last.
 */
async function memoryOf(
  system: System,
  again: Entrant['again'],
  load: LoadGenerator,
): Promise<MemoryReport> {
  const first = await openStreams(system, load)
  const reports = [first]
  const starts = again === undefined ? [] : Array.from({ length: MEMORY_STARTS - 1 }, () => again)
  for (const start of starts) {
    const other = await start()
    try {
      reports.push(await openStreams(other, load))
    } finally {
      await other.stop()
    }
  }
  const byStream = reports.toSorted((one, other) => one.perStreamKib - other.perStreamKib)
  return byStream[Math.floor(byStream.length / 2)] ?? first
}

/** Must be measured first: memory left over from load would be reused by the streams and hide theirs. */
async function openStreams(system: System, load: LoadGenerator): Promise<MemoryReport> {
  for (let served = 0; served < FIRST_STREAMS;) {
    const { perSecond, invalid } = await measure(system, FIRST_TOUCH, load)
    if (invalid !== null) break
    served += (perSecond * FIRST_TOUCH.windowMs) / 1000
  }
  await delay(500)
  const idleMib = residentMib(system.processes())
  const { residentMib: openMib } = await measure(system, OPEN, load)
  const perStreamKib = ((openMib - idleMib) * 1024) / OPEN_STREAMS
  return { idleMib, openMib, perStreamKib, afterMib: openMib }
}

async function runSizes(
  system: System,
  load: LoadGenerator,
  log: LogLine,
): Promise<Record<string, number>> {
  const one = { ...system, callers: system.callers.slice(0, 1) }
  const found: Record<string, number> = {}
  for (const { name, plan } of SIZES) {
    const sample = await measure(one, plan, load)
    found[name] = sample.invalid === null ? sample.p50Ms : Number.NaN
    log(
      `${name.padEnd(20)} ${system.name.padEnd(16)} ${sample.invalid ?? `${sample.p50Ms.toFixed(1)} ms`}`,
    )
  }
  return found
}
