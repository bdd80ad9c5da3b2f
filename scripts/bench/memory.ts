import { setTimeout as delay } from 'node:timers/promises'
import type { Load } from './load-plan.ts'
import { measure } from './measure.ts'
import { residentMib } from './processes.ts'
import type { MemoryStart } from './report.ts'
import type { System } from './system.ts'
import { FIRST_STREAMS, FIRST_TOUCH, IDLE_AFTER_MS, OPEN, OPEN_STREAMS } from './windows.ts'

/** A system that is started only to measure its memory. */
export interface Fresh {
  readonly name: string
  readonly start: () => Promise<System>
  /** The number of starts. Several, because the growth of a V8 heap depends on when it last collected garbage. */
  readonly times: number
}

export type Wait = (ms: number) => Promise<unknown>

/**
 * Measures the memory of a system in each of its starts while no other system runs: a process that maps the same
 * program would share pages with it and so lower the figure.
 */
export async function memoryOf(
  { start, times }: Fresh,
  load: Load,
  wait: Wait = delay,
): Promise<MemoryStart[]> {
  const starts: MemoryStart[] = []
  for (let count = 0; count < times; count += 1) {
    const system = await start()
    try {
      starts.push(await memoryOfOne(system, load, wait))
    } finally {
      await system.stop()
    }
  }
  return starts
}

async function memoryOfOne(system: System, load: Load, wait: Wait): Promise<MemoryStart> {
  await wait(IDLE_AFTER_MS)
  const idleMib = residentMib(system.processes())
  for (let served = 0; served < FIRST_STREAMS;) {
    const { perSecond, invalid } = await measure(system, FIRST_TOUCH, load)
    if (invalid !== null) throw new Error(`the first streams: ${invalid}`)
    served += (perSecond * FIRST_TOUCH.windowMs) / 1000
  }
  await wait(500)
  const servedMib = residentMib(system.processes())
  const { residentMib: openMib, invalid } = await measure(system, OPEN, load)
  if (invalid !== null) throw new Error(`the open streams: ${invalid}`)
  return {
    idleMib,
    servedMib,
    openMib,
    perStreamKib: ((openMib - servedMib) * 1024) / OPEN_STREAMS,
  }
}
