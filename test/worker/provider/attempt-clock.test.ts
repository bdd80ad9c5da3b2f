import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { watchConnect } from '../../../src/worker/provider/connect-watch.ts'
import { AttemptFailure } from '../../../src/worker/provider/failure.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function clockUnder(outer = new Budget(() => Date.now())) {
  return { outer, clock: new AttemptClock(outer, () => Date.now()) }
}

function kindOf(signal: OwnSignal): string | undefined {
  return signal.reason instanceof AttemptFailure ? signal.reason.failure.kind : undefined
}

describe('the clock of an attempt', () => {
  it('aborts with a time-out when a stage lasts too long', async () => {
    const { clock } = clockUnder()
    clock.enter(1_000)
    await vi.advanceTimersByTimeAsync(999)
    expect(clock.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(kindOf(clock.signal)).toBe('timeout')
  })

  it('restarts the time of a stage at every progress', async () => {
    const { clock } = clockUnder()
    clock.enter(1_000)
    await vi.advanceTimersByTimeAsync(800)
    clock.progress()
    await vi.advanceTimersByTimeAsync(999)
    expect(clock.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(clock.signal.aborted).toBe(true)
  })

  it('does not count a wait that is not the provider’s', async () => {
    const { clock } = clockUnder()
    clock.enter(1_000)
    clock.pauseTimeout()
    await vi.advanceTimersByTimeAsync(60_000)
    clock.progress()
    await vi.advanceTimersByTimeAsync(900)
    expect(clock.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(clock.signal.aborted).toBe(true)
  })

  it('replaces a stage by the next, and ends it where the next has no limit', async () => {
    const { clock } = clockUnder()
    clock.enter(1_000)
    clock.enter(undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(clock.signal.aborted).toBe(false)
  })

  it('passes the reason of the outer signal on, also one that was there before', () => {
    const reason = new Error('gone')
    const { outer, clock } = clockUnder()
    outer.abort(reason)
    expect(clock.signal.reason).toBe(reason)
    expect(clockUnder(outer).clock.signal.reason).toBe(reason)
  })

  it('is deaf once it has stopped', async () => {
    const { outer, clock } = clockUnder()
    clock.enter(10)
    clock.stop()
    await vi.advanceTimersByTimeAsync(100)
    outer.abort(new Error('late'))
    expect(clock.signal.aborted).toBe(false)
  })
})

describe('the connect clock of a direct call', () => {
  const url = 'https://nova.example/v1'

  it('gives a silent call up when its host cannot be reached', async () => {
    const { clock } = clockUnder()
    const asked: unknown[] = []
    const refused = async (address: unknown) => {
      asked.push(address)
      throw new Error('refused')
    }
    watchConnect(url, 5_000, clock, refused)
    await vi.advanceTimersByTimeAsync(4_999)
    expect(asked).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(asked).toEqual([{ hostname: 'nova.example', port: 443 }])
    expect(kindOf(clock.signal)).toBe('timeout')
  })

  it('gives it up when reaching the host takes too long as well', async () => {
    const { clock } = clockUnder()
    watchConnect('http://[::1]:8080/v1', 5_000, clock, () => new Promise(() => {}))
    await vi.advanceTimersByTimeAsync(9_999)
    expect(clock.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(kindOf(clock.signal)).toBe('timeout')
  })

  it('leaves a call alone whose host is there and merely thinks', async () => {
    const { clock } = clockUnder()
    watchConnect(url, 5_000, clock, async () => {})
    await vi.advanceTimersByTimeAsync(600_000)
    expect(clock.signal.aborted).toBe(false)
  })

  it('asks nothing once the call was answered', async () => {
    const { clock } = clockUnder()
    const probeConnect = vi.fn<() => Promise<void>>(async () => {})
    watchConnect(url, 5_000, clock, probeConnect)()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(probeConnect).not.toHaveBeenCalled()
  })
})
