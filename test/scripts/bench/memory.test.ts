import { describe, expect, it } from 'vitest'
import type { Load } from '../../../scripts/bench/load-plan.ts'
import { memoryOf } from '../../../scripts/bench/memory.ts'
import type { System } from '../../../scripts/bench/system.ts'
import { FIRST_STREAMS, IDLE_AFTER_MS, OPEN_STREAMS } from '../../../scripts/bench/windows.ts'

/** Streams that the load completes in a window. */
const COMPLETED = 400

/** A system of no processes, and what happens to it in turn. */
function observed(failed = 0) {
  const events: string[] = []
  const load: Load = {
    run({ connections, windowMs }, { opened, closed }) {
      opened()
      events.push(`${connections} streams`)
      closed()
      return Promise.resolve({
        completed: COMPLETED,
        failed,
        failure: failed > 0 ? 'status 503' : null,
        frames: COMPLETED * 8,
        windowMs,
        latenciesMs: [1],
        firstDeltaMs: [1],
        gapMs: null,
      })
    },
  }
  const start = (): Promise<System> => {
    events.push('start')
    return Promise.resolve({
      name: 'observed',
      port: 1,
      processes: () => {
        if (events.at(-1) !== 'memory') events.push('memory')
        return { node: [process.pid] }
      },
      cpuTimesUs: () => ({ node: 0 }),
      callers: [{ path: '/', headers: {} }],
      model: (behaviour) => behaviour,
      stop: async () => void events.push('stop'),
    })
  }
  const wait = async (ms: number) => void events.push(`${ms} ms`)
  const measured = (times: number) => memoryOf({ name: 'observed', start, times }, load, wait)
  return { events, measured }
}

const windowsBefore = Math.ceil(FIRST_STREAMS / COMPLETED)

describe('the memory of a system', () => {
  it('is read a fixed time after the start, before anything is asked, then after a number of streams, then while others are open', async () => {
    const { events, measured } = observed()
    await measured(1)
    expect(events).toEqual([
      'start',
      `${IDLE_AFTER_MS} ms`,
      'memory',
      ...Array.from({ length: windowsBefore }, () => ['1 streams', 'memory']).flat(),
      '500 ms',
      'memory',
      `${OPEN_STREAMS} streams`,
      'memory',
      'stop',
    ])
  })

  it('is measured in each of several starts, one after another', async () => {
    const { events, measured } = observed()
    const starts = await measured(3)
    expect(starts).toHaveLength(3)
    for (const { idleMib, servedMib, openMib, perStreamKib } of starts) {
      expect(Math.min(idleMib, servedMib, openMib)).toBeGreaterThan(1)
      expect(perStreamKib).toBeCloseTo(((openMib - servedMib) * 1024) / OPEN_STREAMS)
    }
    const turns = events.filter((event) => event === 'start' || event === 'stop')
    expect(turns).toEqual(['start', 'stop', 'start', 'stop', 'start', 'stop'])
  })

  it('is not measured where a stream fails, and the system is stopped all the same', async () => {
    const { events, measured } = observed(1)
    await expect(measured(2)).rejects.toThrow('the first streams: 1 failed: status 503')
    expect(events.at(-1)).toBe('stop')
    expect(events.filter((event) => event === 'start')).toHaveLength(1)
  })
})
