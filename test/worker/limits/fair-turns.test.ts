import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { costOfBytes, FairTurns, type TurnLimits } from '../../../src/worker/limits/fair-turns.ts'

/** A client that waits for its answer. */
const stays = new AbortController().signal

/** A clock that moves only when there is a waiter, and lets all others run in between. */
function opened(limits: Partial<TurnLimits> = {}) {
  const clock = { now: 0 }
  const pause = async (ms: number) => {
    clock.now += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
  const deps = { now: () => clock.now, pause }
  const turns = new FairTurns({
    capacity: 2,
    capacityOfCost: 0,
    activeMs: 1_000,
    maxWaiting: 100,
    maxWaitMs: 30_000,
    refusal: () => new ApiError('rate_limit_exceeded', 'Too many.'),
    disconnected: () => new ApiError('invalid_request_error', 'Gone.'),
    ...limits,
  })
  const atWork: string[] = []
  const order: string[] = []
  /** A request that is in progress until it is ended. */
  const open = (
    owner: string,
    { cost = 1, finishes = false, name = owner, client = stays } = {},
  ) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = async () => {
      order.push(name)
      atWork.push(name)
      await promise
      atWork.splice(atWork.indexOf(name), 1)
    }
    const done = turns[finishes ? 'finish' : 'begin']({ owner, cost, client }, deps, work)
    done.catch(() => {})
    return { done, end: resolve }
  }
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, deps, turns, atWork, order, open, settle }
}

describe('turns', () => {
  it('let one owner alone have as many requests in progress as it sends', async () => {
    const { atWork, open, settle } = opened()
    for (let count = 0; count < 50; count += 1) open('alone')
    await settle()
    expect(atWork).toHaveLength(50)
  })

  it('let an owner that sends little go before all that wait of one that sends much', async () => {
    const { order, open, settle } = opened({ activeMs: Number.MAX_SAFE_INTEGER })
    open('other').end()
    await settle()
    const flood = Array.from({ length: 10 }, () => open('flood'))
    await settle()
    expect(order).toEqual(['other', 'flood', 'flood'])
    open('other', { name: 'asked later' })
    flood[0]?.end()
    await settle()
    expect(order.at(-1)).toBe('asked later')
  })

  it('serve owners that wait in turn', async () => {
    const { order, open, settle } = opened({ capacity: 1 })
    const gate = open('gate')
    await settle()
    const sent = ['a', 'b', 'c'].flatMap((name) => [open(name), open(name), open(name)])
    for (const request of [gate, ...sent]) request.end()
    await Promise.all(sent.map(({ done }) => done))
    expect(order).toEqual(['gate', 'a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'])
  })

  it('let all that fit continue together, so that they can share their calls', async () => {
    const { turns, deps, open, settle } = opened({ capacity: 3 })
    const gates = ['a', 'b', 'c'].map((name) => open(name))
    await settle()
    const events: string[] = []
    const looking = (owner: string) => {
      const now = () => {
        events.push('looks')
        return 0
      }
      const work = async () => void events.push('begins')
      return turns.begin(
        { owner, cost: 1, client: stays },
        { ...deps, now, pause: () => new Promise(() => {}) },
        work,
      )
    }
    const waiting = ['d', 'e', 'f'].map(looking)
    events.length = 0
    for (const gate of gates) gate.end()
    await Promise.all(waiting)
    expect(events.slice(0, events.indexOf('begins'))).toHaveLength(6)
  })

  it('give an owner of large requests fewer turns', async () => {
    const { order, open, settle } = opened({ capacity: 1 })
    const gate = open('gate')
    await settle()
    const large = [open('large', { cost: 3 }), open('large', { cost: 3 })]
    const small = [1, 2, 3, 4].map(() => open('small'))
    const sent = [gate, ...large, ...small]
    for (const request of sent) request.end()
    await Promise.all(sent.map(({ done }) => done))
    const expected = ['gate', 'large', 'small', 'small', 'small', 'large', 'small']
    expect(order).toEqual(expected)
  })

  it('let small requests run side by side as far as their cost goes, beyond the number of others', async () => {
    const { atWork, open, settle } = opened({ capacity: 1, capacityOfCost: 4 })
    for (let count = 0; count < 10; count += 1) for (const name of ['a', 'b']) open(name)
    await settle()
    expect(atWork).toEqual(['a', 'b', 'a', 'b'])
  })

  it('let no small requests go before a large one whose turn it is, and few large ones run at a time', async () => {
    const { atWork, open, settle } = opened({ capacity: 2, capacityOfCost: 4 })
    const small = ['a', 'a', 'b'].map((name) => open(name))
    await settle()
    const large = [open('c', { cost: 3 }), open('d', { cost: 3 })]
    for (const name of ['a', 'b']) open(name)
    await settle()
    expect(atWork).toEqual(['a', 'a', 'b'])
    small[0]?.end()
    await settle()
    expect(atWork).toEqual(['a', 'b'])
    small[1]?.end()
    await settle()
    expect(atWork).toEqual(['b', 'c'])
    small[2]?.end()
    await settle()
    expect(atWork).toEqual(['c', 'd'])
    large[0]?.end()
    await settle()
    expect(atWork).toEqual(['d', 'a'])
  })

  it('are counted at their cost while they wait aside no longer', async () => {
    const limits = { capacity: 1, capacityOfCost: 4, activeMs: Number.MAX_SAFE_INTEGER }
    const { turns, deps, atWork, open, settle } = opened(limits)
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn = { owner: 'waits', cost: 4, client: stays }
    const waiting = turns.begin(turn, deps, (held) => held.yieldDuring(() => promise))
    await settle()
    const others = ['a', 'b', 'c', 'd', 'e'].map((name) => open('other', { name }))
    await settle()
    expect(atWork).toEqual(['a', 'b', 'c', 'd'])
    resolve()
    await waiting
    others[0]?.end()
    await settle()
    expect(atWork).toEqual(['b', 'c', 'd', 'e'])
  })

  it('are counted at what they turn out to cost as long as they are at work', async () => {
    const limits = { capacity: 1, capacityOfCost: 4, activeMs: Number.MAX_SAFE_INTEGER }
    const { turns, deps, atWork, open, settle } = opened(limits)
    const read = Promise.withResolvers<void>()
    const aside = Promise.withResolvers<void>()
    const turn = { owner: 'repeats', cost: 1, client: stays }
    const repeating = turns.begin(turn, deps, async (held) => {
      held.moreCost(3)
      await read.promise
      await held.yieldDuring(async () => {
        held.moreCost(1)
        await aside.promise
      })
    })
    await settle()
    const others = ['a', 'b', 'c', 'd', 'e'].map((name) => open('other', { name }))
    await settle()
    expect(atWork).toEqual([])
    read.resolve()
    await settle()
    expect(atWork).toEqual(['a', 'b', 'c', 'd'])
    aside.resolve()
    await repeating
    others[0]?.end()
    await settle()
    expect(atWork).toEqual(['b', 'c', 'd', 'e'])
  })

  it('let what ends a request go before what its owner begins, and never refuse it', async () => {
    const { order, open, settle } = opened({ capacity: 1, maxWaiting: 1 })
    const gate = open('other')
    await settle()
    open('a', { name: 'begins' })
    await settle()
    await expect(open('a').done).rejects.toThrow('Too many.')
    open('a', { finishes: true, name: 'ends' }).end()
    gate.end()
    await settle()
    expect(order).toEqual(['other', 'ends', 'begins'])
  })

  it('refuse a request that waited too long', async () => {
    const { clock, open, settle } = opened({ capacity: 1 })
    open('other')
    await settle()
    const error: unknown = await open('a').done.catch((reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error('not refused')
    expect([error.code, error.message]).toEqual(['rate_limit_exceeded', 'Too many.'])
    expect(clock.now).toBeGreaterThanOrEqual(30_000)
  })

  it('are not waited for by a client that has left, which makes room in the queue at once', async () => {
    const { order, open, settle } = opened({ capacity: 1, maxWaiting: 1 })
    const gate = open('other')
    await settle()
    const leaving = new AbortController()
    const left = open('a', { client: leaving.signal })
    await expect(open('a').done).rejects.toThrow('Too many.')
    leaving.abort()
    await expect(left.done).rejects.toMatchObject({
      code: 'invalid_request_error',
      message: 'Gone.',
    })
    const next = open('a', { name: 'next' })
    gate.end()
    await settle()
    expect(order).toEqual(['other', 'next'])
    next.end()
    await expect(open('a', { client: leaving.signal }).done).rejects.toThrow('Gone.')
  })

  it('give the place of a request that fails to the next', async () => {
    const { turns, deps, order, open, settle } = opened({ capacity: 1 })
    const { promise, reject } = Promise.withResolvers<void>()
    const failing = turns.begin({ owner: 'a', cost: 1, client: stays }, deps, () => promise)
    const next = open('b')
    await settle()
    reject(new Error('failed'))
    await expect(failing).rejects.toThrow('failed')
    await settle()
    expect(order).toEqual(['b'])
    next.end()
  })

  it('leave a place to others during a wait that may take long, and count again after it', async () => {
    const limits = { capacity: 1, activeMs: Number.MAX_SAFE_INTEGER }
    const { turns, deps, order, atWork, open, settle } = opened(limits)
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn = { owner: 'waits', cost: 1, client: stays }
    const waiting = turns.begin(turn, deps, async (held) => {
      // Two waits at a time give back one place.
      await Promise.all([held.yieldDuring(() => promise), held.yieldDuring(() => promise)])
      order.push('goes on')
      await held.yieldDuring(() => Promise.reject(new Error('the wait failed'))).catch(() => {})
    })
    await settle()
    const others = ['a', 'b', 'c'].map((name) => open('other', { name }))
    await settle()
    expect(atWork).toEqual(['a'])
    others[0]?.end()
    await settle()
    expect(atWork).toEqual(['b'])
    resolve()
    await waiting
    await settle()
    expect([order, atWork]).toEqual([['a', 'b', 'goes on'], ['b']])
    others[1]?.end()
    await settle()
    expect(atWork).toEqual(['c'])
    others[2]?.end()
    await settle()
    expect(atWork).toEqual([])
    for (const name of ['last', 'one more']) open('other', { name })
    await settle()
    expect(atWork).toEqual(['last'])
  })

  it('are given back once where a wait outlasts the work', async () => {
    const limits = { capacity: 1, activeMs: Number.MAX_SAFE_INTEGER }
    const { turns, deps, atWork, open, settle } = opened(limits)
    const { promise, resolve } = Promise.withResolvers<void>()
    let waiting: Promise<void> | undefined
    await turns.begin({ owner: 'leaves', cost: 1, client: stays }, deps, async (held) => {
      waiting = held.yieldDuring(() => promise)
    })
    resolve()
    await waiting
    for (const name of ['a', 'b', 'c']) open('other', { name })
    await settle()
    expect(atWork).toEqual(['a'])
  })

  it('let all requests be in progress while there are fewer of them than owners', async () => {
    const { atWork, order, open, settle } = opened()
    for (let count = 0; count < 100; count += 1) open(`owner ${count}`).end()
    await settle()
    for (let count = 0; count < 98; count += 1) open(`owner ${count}`)
    await settle()
    expect([order.length, atWork.length]).toEqual([198, 98])
  })

  it('let half of many owners have one request in progress each', async () => {
    const { atWork, open, settle } = opened()
    for (let count = 0; count < 100; count += 1) open(`owner ${count}`)
    await settle()
    expect(atWork.length).toBeGreaterThanOrEqual(50)
  })

  it('forget who has not asked for a while', async () => {
    const { clock, atWork, open, settle } = opened()
    open('gone').end()
    await settle()
    clock.now += 2_000
    for (let count = 0; count < 50; count += 1) open('alone')
    await settle()
    expect(atWork).toHaveLength(50)
  })

  it('count a body by its bytes', () => {
    expect(costOfBytes(0)).toBe(1)
    expect(costOfBytes(4 * 1024 * 1024)).toBe(65)
  })
})
