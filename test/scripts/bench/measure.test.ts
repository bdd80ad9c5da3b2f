import { describe, expect, it } from 'vitest'
import type { LoadResult } from '../../../scripts/bench/load-plan.ts'
import { sampleOf } from '../../../scripts/bench/measure.ts'
import { ticksOf } from '../../../scripts/bench/processes.ts'

const RESULT: LoadResult = {
  completed: 4,
  failed: 0,
  failure: null,
  frames: 80,
  windowMs: 2_000,
  latenciesMs: [1, 2, 3, 4],
  firstDeltaMs: [5, 6, 7],
}

describe('a window of the benchmark', () => {
  it('counts requests and frames per second, and CPU per request', () => {
    expect(sampleOf(RESULT, { cpuUs: 400, residentMib: 64 }, false)).toEqual({
      perSecond: 2,
      p50Ms: 2,
      p99Ms: 4,
      firstDeltaP50Ms: 6,
      framesPerSecond: 40,
      cpuUs: 100,
      residentMib: 64,
      invalid: null,
    })
  })

  it('counts CPU per frame where streams are paced', () => {
    expect(sampleOf(RESULT, { cpuUs: 400, residentMib: 0 }, true).cpuUs).toBe(5)
  })

  it('is invalid with a single failure', () => {
    const failed = { ...RESULT, failed: 1, failure: 'status 503' }
    expect(sampleOf(failed, { cpuUs: 1, residentMib: 0 }, false).invalid).toBe(
      '1 failed: status 503',
    )
  })

  it('is invalid when nothing was completed', () => {
    const empty = { ...RESULT, completed: 0, latenciesMs: [] }
    expect(sampleOf(empty, { cpuUs: 1, residentMib: 0 }, false).invalid).toBe(
      'nothing was completed',
    )
  })

  it('reads user and system time behind a command name with blanks and brackets', () => {
    const stat = '12 (node (main) x) S 1 12 12 0 -1 4194560 900 0 0 0 250 17 0 0 20 0 11 0 5'
    expect(ticksOf(stat)).toBe(267)
  })
})
