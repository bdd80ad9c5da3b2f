import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import {
  FairLimiter,
  type FairLimits,
  type Place,
} from '../../../src/worker/limits/fair-limiter.ts'

/** A clock that moves only when there is a waiter, and lets all others run in between. */
function waiting() {
  const clock = { now: 0 }
  const pause = async (ms: number) => {
    clock.now += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, tools: { now: () => clock.now, pause } }
}

const limiter = (limits: Partial<FairLimits> = {}) =>
  new FairLimiter({
    capacity: 10,
    share: 10,
    maxWaiting: 100,
    maxWaitMs: 180_000,
    refusal: () => new ApiError('service_unavailable', 'Full.'),
    ...limits,
  })

describe('the limiter', () => {
  it('lets in what fits, at once', async () => {
    const { clock, tools } = waiting()
    const gate = limiter()
    await gate.enter('a', 4, tools)
    await gate.enter('a', 6, tools)
    expect(clock.now).toBe(0)
  })

  it('forgets who has left while it waited', async () => {
    const { clock, tools } = waiting()
    const gate = limiter()
    const first = await gate.enter('a', 8, tools)
    const client = new AbortController()
    const left = gate.enter('b', 9, { ...tools, client: client.signal })
    const after = gate.enter('c', 2, tools)
    await tools.pause(100)
    client.abort()
    await expect(left).rejects.toMatchObject({ message: 'The client closed its connection.' })
    await after
    expect(clock.now).toBeLessThan(1_000)
    first.leave()
  })

  it('lets the others in as room is given back, first come first served', async () => {
    const { tools } = waiting()
    const gate = limiter()
    const first = await gate.enter('a', 8, tools)
    const order: string[] = []
    const enter = async (name: string, amount: number) => {
      const place = await gate.enter(name, amount, tools)
      order.push(name)
      return place
    }
    // The small one would fit now, but would starve the large one if it were let past.
    const large = enter('large', 9)
    const small = enter('small', 2)
    await tools.pause(100)
    expect(order).toEqual([])
    first.leave()
    const place = await large
    expect(order).toEqual(['large'])
    place.leave()
    await small
    expect(order).toEqual(['large', 'small'])
  })

  it('keeps room for others from an owner who has its share', async () => {
    const { clock, tools } = waiting()
    const gate = limiter({ share: 4 })
    await gate.enter('greedy', 2, tools)
    const second = await gate.enter('greedy', 2, tools)
    const third = gate.enter('greedy', 2, tools)
    await tools.pause(100)
    const before = clock.now
    await gate.enter('other', 4, tools)
    expect(clock.now).toBe(before)
    second.leave()
    await third
  })

  it('lets owners that hold as much take turns, in whichever order and however often they came', async () => {
    const { tools } = waiting()
    const gate = limiter({ capacity: 1, share: 1 })
    const order: string[] = []
    const enter = async (owner: string) => {
      const place = await gate.enter(owner, 1, tools)
      order.push(owner)
      await tools.pause(100)
      place.leave()
    }
    await Promise.all(['greedy', 'greedy', 'greedy', 'other', 'other', 'third'].map(enter))
    expect(order).toEqual(['greedy', 'other', 'third', 'greedy', 'other', 'greedy'])
  })

  it('lets the owner who has least go first when room is given back', async () => {
    const { tools } = waiting()
    const gate = limiter()
    const places = [await gate.enter('greedy', 5, tools), await gate.enter('greedy', 5, tools)]
    const order: string[] = []
    const enter = (owner: string) =>
      gate.enter(owner, 5, tools).then((place: Place) => (order.push(owner), place))
    const greedy = enter('greedy')
    const modest = enter('modest')
    places[0]?.leave()
    await modest
    expect(order).toEqual(['modest'])
    places[1]?.leave()
    await greedy
  })

  it('lets an owner who holds nothing in with more than its share', async () => {
    const { tools } = waiting()
    await expect(limiter({ share: 4 }).enter('a', 10, tools)).resolves.toBeDefined()
  })

  it('counts a place given back twice once', async () => {
    const { clock, tools } = waiting()
    const gate = limiter()
    const place = await gate.enter('a', 6, tools)
    await gate.enter('a', 4, tools)
    place.leave()
    place.leave()
    await gate.enter('a', 6, tools)
    expect(clock.now).toBe(0)
    await expect(gate.enter('a', 1, tools)).rejects.toThrow('Full.')
  })

  it('refuses after the longest wait, and forgets who it refused', async () => {
    const { clock, tools } = waiting()
    const gate = limiter()
    const place = await gate.enter('a', 10, tools)
    const error: unknown = await gate.enter('b', 1, tools).catch((reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error('not refused')
    expect([error.code, error.message]).toEqual(['service_unavailable', 'Full.'])
    expect(clock.now).toBeGreaterThanOrEqual(180_000)
    place.leave()
    await gate.enter('c', 10, tools)
  })

  it('refuses at once what would wait behind too many of the same owner, but not of others', async () => {
    const { clock, tools } = waiting()
    const gate = limiter({ maxWaiting: 2 })
    const place = await gate.enter('a', 10, tools)
    const waiters = [gate.enter('a', 1, tools), gate.enter('a', 1, tools)]
    const before = clock.now
    await expect(gate.enter('a', 1, tools)).rejects.toThrow('Full.')
    expect(clock.now - before).toBeLessThan(100)
    const other = gate.enter('b', 1, tools)
    place.leave()
    await Promise.all([...waiters, other])
  })
})
