import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Readiness } from '../../../src/worker/batching/readiness.ts'

function opened() {
  const state = { now: 1_000, checks: 0, failure: undefined as Error | undefined }
  const gate = { open: Promise.resolve() }
  const readiness = new Readiness({
    now: () => state.now,
    pause: async (ms) => {
      state.now += ms
      await new Promise((resolve) => setImmediate(resolve))
    },
    check: async () => {
      state.checks += 1
      await gate.open
      if (state.failure) throw state.failure
    },
    timeoutError: () => new Error('no answer in time'),
  })
  return { state, gate, readiness }
}

describe('readiness', () => {
  // The checks' own time does not pass.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  it('is checked once for all that ask together', async () => {
    const { state, gate, readiness } = opened()
    const { promise, resolve } = Promise.withResolvers<void>()
    gate.open = promise
    // Each that waits moves the clock on.
    const asked = Array.from({ length: 8 }, () => readiness.confirm())
    resolve()
    await Promise.all(asked)
    expect(state.checks).toBe(1)
  })

  it('is checked again after a quarter of a second, and when the clock was set back', async () => {
    const { state, readiness } = opened()
    await readiness.confirm()
    state.now += 249
    await readiness.confirm()
    expect(state.checks).toBe(1)
    state.now += 1
    await readiness.confirm()
    expect(state.checks).toBe(2)
    state.now -= 10_000
    await readiness.confirm()
    expect(state.checks).toBe(3)
  })

  it('fails for everybody who asks at about the time of a failure, and heals', async () => {
    const { state, readiness } = opened()
    state.failure = new Error('away')
    await expect(readiness.confirm()).rejects.toThrow('away')
    state.failure = undefined
    await expect(readiness.confirm()).rejects.toThrow('away')
    state.now += 250
    await expect(readiness.confirm()).resolves.toBeUndefined()
    expect(state.checks).toBe(2)
  })

  it('does not wait for a check that never ends', async () => {
    const { state, gate, readiness } = opened()
    gate.open = new Promise(() => {})
    void readiness.confirm()
    gate.open = Promise.resolve()
    await readiness.confirm()
    expect(state.checks).toBe(2)
  })
})

describe('readiness of a router whose storage stands still', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 0 }))
  afterEach(() => void vi.useRealTimers())

  /** Asks at these times, and answers with when each was told what. */
  async function toldAt(...times: readonly number[]): Promise<string[]> {
    const readiness = new Readiness({
      now: Date.now,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      check: () =>
        new Promise((_resolve, reject) => setTimeout(() => reject(new Error('late')), 10_000)),
      timeoutError: () => new Error('no answer in time'),
    })
    const told = times.map(async (at) => {
      await new Promise((resolve) => setTimeout(resolve, at))
      const answer = await readiness.confirm().then(
        () => 'ready',
        (error: Error) => error.message,
      )
      return `${answer} ${Date.now() - at}`
    })
    await vi.advanceTimersByTimeAsync(60_000)
    return Promise.all(told)
  }

  it('is denied after three seconds, before those who ask give up', async () => {
    expect(await toldAt(0, 20_000)).toEqual(['no answer in time 3000', 'no answer in time 3000'])
  })

  it('is denied within as long to all that ask meanwhile', async () => {
    const told = await toldAt(0, 10, 500, 1_400, 2_000, 2_990)
    for (const text of told) {
      expect(text).toMatch(/^no answer in time \d+$/)
      expect(Number(/\d+$/.exec(text)?.[0])).toBeLessThanOrEqual(3_050)
    }
  })
})
