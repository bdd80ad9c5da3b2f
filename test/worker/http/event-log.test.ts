import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EventLog, type LoggedEvent } from '../../../src/worker/http/event-log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

interface Options {
  readonly joins?: boolean
  readonly keepAlive?: (work: Promise<unknown>) => void
}

function opened({ joins = true, keepAlive = () => {} }: Options = {}) {
  const noted: (readonly LoggedEvent[])[] = []
  const events = new EventLog({
    now: () => Date.now(),
    pause,
    keepAlive,
    joins,
    sinks: [(some) => noted.push(some)],
  })
  const codes = () => noted.map((some) => some.map(({ fields }) => fields.code))
  return { events, noted, codes }
}

describe('events of a moment', () => {
  it('are noted together, in their order, and not before the moment is over', async () => {
    const { events, codes } = opened()
    events.log('request', { code: 'one' })
    events.log('request', { code: 'two' })
    await vi.advanceTimersByTimeAsync(49)
    expect(codes()).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(codes()).toEqual([['one', 'two']])
    events.log('request', { code: 'three' })
    await vi.advanceTimersByTimeAsync(50)
    expect(codes()).toEqual([['one', 'two'], ['three']])
  })

  it('keep the time at which they were logged', async () => {
    const { events, noted } = opened()
    const begun = Date.now()
    events.log('request')
    await vi.advanceTimersByTimeAsync(20)
    events.log('settled')
    await vi.advanceTimersByTimeAsync(30)
    expect(noted).toEqual([
      [
        { event: 'request', fields: {}, at: begun },
        { event: 'settled', fields: {}, at: begun + 20 },
      ],
    ])
  })

  it('keep the request of the first one alive until they are noted', async () => {
    const kept: Promise<unknown>[] = []
    const { events, codes } = opened({ keepAlive: (work) => kept.push(work) })
    events.log('request', { code: 'one' })
    events.log('request', { code: 'two' })
    expect(kept).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(50)
    await kept[0]
    expect(codes()).toEqual([['one', 'two']])
  })

  it('are noted with the next event where the runtime has ended the request that was to do it', () => {
    const { events, codes } = opened()
    events.log('request', { code: 'one' })
    // The timer belongs to that request and never fires.
    vi.clearAllTimers()
    vi.setSystemTime(Date.now() + 1_000)
    events.log('request', { code: 'two' })
    expect(codes()).toEqual([['one', 'two']])
  })

  it('do not wait once there are many', () => {
    const { events, codes } = opened()
    for (let count = 0; count < 1_024; count += 1) events.log('request')
    expect(codes().map(({ length }) => length)).toEqual([1_024])
  })

  it('are noted at once for whoever is about to read what was noted, and once', async () => {
    const { events, codes } = opened()
    events.log('request', { code: 'one' })
    events.catchUp()
    expect(codes()).toEqual([['one']])
    events.catchUp()
    await vi.advanceTimersByTimeAsync(50)
    expect(codes()).toEqual([['one']])
  })

  it('are noted even where what takes note of them logs something itself', async () => {
    const codes: (string | undefined)[] = []
    const events: EventLog = new EventLog({
      now: () => Date.now(),
      pause,
      keepAlive: () => {},
      joins: true,
      sinks: [
        (some) => {
          for (const { event, fields } of some) {
            codes.push(fields.code)
            if (event === 'request') events.log('settled', { code: 'second' })
          }
        },
      ],
    })
    events.log('request', { code: 'first' })
    await vi.advanceTimersByTimeAsync(100)
    expect(codes).toEqual(['first', 'second'])
  })
})

describe('events of a console that is no file', () => {
  it('are noted at once, each alone', () => {
    const { events, codes } = opened({ joins: false })
    events.log('request', { code: 'one' })
    events.log('request', { code: 'two' })
    expect(codes()).toEqual([['one'], ['two']])
  })
})
