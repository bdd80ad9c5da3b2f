import { setTimeout as delay } from 'node:timers/promises'
import type { LoadGenerator } from './load.ts'
import { measure, type Sample, type WindowPlan } from './measure.ts'
import { residentMib } from './processes.ts'
import type { MemoryStart, SystemReport } from './report.ts'
import type { System } from './system.ts'
import { SIZES, windowPlan, type Extent, type WindowKind } from './windows.ts'

/** A system of a run, and the parts of the run that apply to it. */
export interface Entrant {
  readonly system: System
  readonly warmUp: readonly WindowPlan[]
  /** The kinds of windows that it is measured in, if the run has them. */
  readonly kinds: readonly WindowKind[]
  /** Whether it is measured with large prompts and lines. */
  readonly sizes: boolean
  /** The tools in every request of its rounds. */
  readonly tools: readonly unknown[]
}

export type LogLine = (line: string) => void

/** What every measurement of a run needs. */
export interface Instruments {
  readonly load: LoadGenerator
  readonly log: LogLine
}

/**
 * Measures all entrants: warm-up, interleaved rounds, large bodies, and then memory.
 * @param memories the results of the starts that only measured memory, by name of the system
 */
export async function runAll(
  entrants: readonly Entrant[],
  extent: Extent,
  { load, log }: Instruments,
  memories: ReadonlyMap<string, MemoryStart[]>,
): Promise<SystemReport[]> {
  for (const { system, warmUp, tools } of entrants) {
    log(`warming up ${system.name}`)
    for (const plan of warmUp) await measure(system, { ...plan, tools }, load)
  }
  const windows = await runRounds(entrants, extent, load, log)
  const sizes = new Map<string, Record<string, number>>()
  for (const { system, sizes: measured } of entrants) {
    if (measured) sizes.set(system.name, await runSizes(system, load, log))
  }
  await delay(2_000)
  return entrants.map(({ system }) => {
    const starts = memories.get(system.name)
    return {
      name: system.name,
      windows: windows.get(system.name) ?? {},
      memory: starts === undefined ? null : { starts, afterMib: residentMib(system.processes()) },
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
        const plan = windowPlan(kind, extent)
        const sample = await measure(system, { ...plan, tools }, load)
        const kinds = found.get(system.name) ?? {}
        found.set(system.name, { ...kinds, [kind]: [...(kinds[kind] ?? []), sample] })
        const counted = plan.stream && plan.once ? 'framesPerSecond' : 'perSecond'
        log(
          `round ${round}  ${kind.padEnd(12)} ${system.name.padEnd(width)}  ${inBrief(sample, counted)}`,
        )
      }
    }
  }
  return found
}

/** @param counted what CPU is divided by: frames for paced streams, otherwise answers */
function inBrief(sample: Sample, counted: 'framesPerSecond' | 'perSecond'): string {
  if (sample.invalid !== null) return `INVALID: ${sample.invalid}`
  return `${sample[counted].toFixed(0)}/s, ${sample.cpuUs.toFixed(0)} us CPU each`
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
