import { setTimeout as delay } from 'node:timers/promises'
import type { Load } from './load-plan.ts'
import { measure } from './measure.ts'
import { residentMib } from './processes.ts'
import type { MemoryStart } from './report.ts'
import type { System } from './system.ts'
import { FIRST_STREAMS, FIRST_TOUCH, IDLE_AFTER_MS, OPEN, OPEN_STREAMS } from './windows.ts'

/** A system that is started for its memory alone. */
export interface Fresh {
  readonly name: string
  readonly start: () => Promise<System>
  /** How often: how much one of V8's heaps grows while streams open depends on when it collected garbage last. */
  readonly times: number
}

export type Wait = (ms: number) => Promise<unknown>

/**
 * What a system takes in each of its starts, while no other system runs: another one that maps the same program would
 * take over a part of its pages.
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
