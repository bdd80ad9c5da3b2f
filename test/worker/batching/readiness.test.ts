import { describe, expect, it } from 'vitest'
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
  })
  return { state, gate, readiness }
}

describe('readiness', () => {
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
