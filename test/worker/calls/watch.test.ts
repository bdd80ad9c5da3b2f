import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Watch } from '../../../src/worker/calls/watch.ts'
import { ownTimers } from '../../support/own-timers.ts'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

function set() {
  const kept: Promise<unknown>[] = []
  const looked: number[] = []
  const state = { goesOn: true }
  const host = { now: Date.now, keepAlive: (work: Promise<unknown>) => void kept.push(work) }
  const watch = new Watch(host, 100, () => {
    looked.push(Date.now())
    return state.goesOn
  })
  return { kept, looked, state, watch }
}

describe('a watch', () => {
  it('looks from time to time while there is anything to look after, and keeps its request alive until then', async () => {
    const timers = ownTimers()
    const { kept, looked, state, watch } = set()
    watch.begin()
    await vi.advanceTimersByTimeAsync(250)
    expect(looked).toEqual([100, 200])
    state.goesOn = false
    await vi.advanceTimersByTimeAsync(1_000)
    expect(looked).toEqual([100, 200, 300])
    await kept[0]
    expect([kept.length, timers.left()]).toEqual([1, 0])
  })

  it('is kept by one request at a time, and by the next one that begins after it is over', async () => {
    const { kept, looked, state, watch } = set()
    watch.begin()
    watch.begin()
    await vi.advanceTimersByTimeAsync(150)
    watch.begin()
    expect(kept).toHaveLength(1)
    state.goesOn = false
    await vi.advanceTimersByTimeAsync(50)
    watch.begin()
    expect(kept).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(looked).toEqual([100, 200, 300])
  })

  it('is taken over when its request was lost, with its timer', async () => {
    const { kept, looked, watch } = set()
    watch.begin()
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(200)
    watch.begin()
    expect(kept).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    watch.begin()
    expect(kept).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(100)
    expect(looked).toEqual([301])
  })
})
