import { describe, expect, it } from 'vitest'
import { ClockWatch } from '../../../src/enclave/clock/clock-watch.ts'
import { ProvenTime } from '../../../src/enclave/clock/proven-time.ts'

const START = 1_800_000_000_000
const MINUTE = 60_000

function open(signedAt = 0) {
  const clock = { now: START, monotonic: 0 }
  const told: unknown[] = []
  const logged: unknown[] = []
  const proven = new ProvenTime(() => clock.now)
  const watch = new ClockWatch({
    proven,
    refresh: () => proven.note(signedAt),
    now: () => clock.now,
    monotonic: () => clock.monotonic,
    notify: (message) => told.push(message),
    log: (event) => logged.push(event),
  })
  return { clock, told, logged, watch, proven }
}

const behind = (reason: string) => ({ type: 'clock_behind', reason })

describe('the watch on the clock', () => {
  it('reports nothing while the clock runs, is set ahead, or differs by less than a minute', () => {
    const { clock, told, watch } = open(START + MINUTE)
    watch.look()
    Object.assign(clock, { now: START + 10 * MINUTE, monotonic: MINUTE })
    watch.look()
    Object.assign(clock, { now: START + 10.5 * MINUTE, monotonic: 2 * MINUTE })
    watch.look()
    expect(told).toEqual([])
  })

  it('notices once that the clock is behind a verified document', () => {
    const { told, logged, watch } = open(START + 2 * MINUTE)
    watch.look()
    watch.look()
    const reason =
      'the clock is behind a document that was signed already: expired documents and evidence may look valid'
    expect(told).toEqual([behind(reason)])
    expect(logged).toEqual(['clock_behind'])
  })

  it('notices that the clock was set back, though no document is newer', () => {
    const { clock, told, watch } = open()
    Object.assign(clock, { now: START - 2 * MINUTE, monotonic: 1_000 })
    watch.look()
    watch.look()
    expect(told).toEqual([behind('the clock was set back while the router ran')])
  })

  it('does not forget a document because an older one follows', () => {
    const { proven } = open()
    proven.note(START + 2 * MINUTE)
    proven.note(START)
    expect(proven.isAhead()).toBe(true)
  })
})
