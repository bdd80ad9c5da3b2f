import { describe, expect, it } from 'vitest'
import { LoadWindow } from '../../../scripts/bench/load-window.ts'

describe('a window of load', () => {
  it('measures only what happens while it is open', async () => {
    const window = new LoadWindow()
    const measure = (ms: number) => {
      window.firstDelta(ms)
      window.gap(ms)
      window.completed(ms)
      window.frames(ms)
    }
    measure(1)
    const passed = window.pass({ warmMs: 0, windowMs: 200 })
    await expect.poll(() => (measure(2), window.result.completed)).toBeGreaterThan(0)
    await passed
    measure(3)
    const { firstDeltaMs, latenciesMs, gapMs, frames, completed } = window.result
    expect(new Set(firstDeltaMs)).toEqual(new Set([2]))
    expect(new Set(latenciesMs)).toEqual(new Set([2]))
    expect(gapMs).toEqual({ p50: 2, p99: 2 })
    expect(frames).toBe(2 * completed)
  })
})
