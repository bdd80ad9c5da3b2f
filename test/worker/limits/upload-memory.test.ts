import { describe, expect, it } from 'vitest'
import { ApiError, errorHeaders } from '../../../src/worker/http/errors.ts'
import { UploadMemoryLimiter } from '../../../src/worker/limits/upload-memory.ts'

/** A clock that moves only when somebody waits, and lets all others look in between. */
function waiting() {
  const clock = { now: 0 }
  const pause = async (ms: number) => {
    clock.now += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, tools: { now: () => clock.now, pause } }
}

describe('the gate for uploads', () => {
  it('lets in what fits, at once', async () => {
    const { clock, tools } = waiting()
    const gate = new UploadMemoryLimiter(10)
    await gate.enter(4, tools)
    await gate.enter(6, tools)
    expect(clock.now).toBe(0)
  })

  it('lets the others in as room is given back, first come first served', async () => {
    const { tools } = waiting()
    const gate = new UploadMemoryLimiter(10)
    const first = await gate.enter(8, tools)
    const order: string[] = []
    const enter = async (name: string, bytes: number) => {
      const pass = await gate.enter(bytes, tools)
      order.push(name)
      return pass
    }
    // The small one would fit now, but would starve the large one if it were let past.
    const large = enter('large', 9)
    const small = enter('small', 2)
    await tools.pause(100)
    expect(order).toEqual([])
    first.leave()
    const pass = await large
    expect(order).toEqual(['large'])
    pass.leave()
    await small
    expect(order).toEqual(['large', 'small'])
  })

  it('counts a place given back twice once', async () => {
    const { clock, tools } = waiting()
    const gate = new UploadMemoryLimiter(10)
    const pass = await gate.enter(6, tools)
    await gate.enter(4, tools)
    pass.leave()
    pass.leave()
    await gate.enter(6, tools)
    expect(clock.now).toBe(0)
    await expect(gate.enter(1, tools)).rejects.toThrow('Too many uploads')
  })

  it('refuses after three minutes, with a time to come back, and forgets who it refused', async () => {
    const { clock, tools } = waiting()
    const gate = new UploadMemoryLimiter(10)
    const pass = await gate.enter(10, tools)
    const error: unknown = await gate.enter(1, tools).catch((reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error('not refused')
    expect(error.code).toBe('service_unavailable')
    const message = 'Too many uploads are in progress. Try again in a few seconds.'
    expect(error.message).toBe(message)
    expect(errorHeaders(error)).toEqual({ 'retry-after': '10' })
    expect(clock.now).toBeGreaterThanOrEqual(180_000)
    pass.leave()
    await gate.enter(10, tools)
  })
})
