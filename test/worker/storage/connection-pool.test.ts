import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import {
  createConnectionPool,
  type PooledConnection,
  type PoolUser,
} from '../../../src/worker/storage/connection-pool.ts'
import { withDeadline } from '../../../src/worker/storage/operation-deadline.ts'
import { ownTimers } from '../../support/own-timers.ts'

interface TestConnection extends PooledConnection {
  readonly name: number
}

const writer = (owner: string) => ({ owner, reads: false })
const reader = (owner: string) => ({ owner, reads: true })
const never = () => new Promise<never>(() => {})

describe('a pool of connections', () => {
  let opened = 0
  let discarded: number[] = []
  let asked: number[] = []
  let isAlive: () => Promise<boolean> = async () => true
  let opensFail = false
  const create = (size: number, share = size) => {
    const connections = createConnectionPool<TestConnection>({
      open: () => {
        if (opensFail) throw new TypeError('the address is none')
        const name = ++opened
        return {
          name,
          discard: () => discarded.push(name),
          isAlive: () => {
            asked.push(name)
            return isAlive()
          },
        }
      },
      size,
      share,
      survives: (error) => !(error instanceof RangeError),
      now: Date.now,
    })
    const use = <Result>(user: PoolUser, work: (connection: TestConnection) => Promise<Result>) =>
      withDeadline({ deadlineMs: 1000, now: Date.now }, (deadline) =>
        connections.use(user, deadline, work),
      )
    return { use, pool: connections }
  }

  beforeEach(() => {
    vi.useFakeTimers()
    opened = 0
    discarded = []
    asked = []
    isAlive = async () => true
    opensFail = false
  })
  afterEach(() => vi.useRealTimers())

  it('opens a connection at its first use and uses it again', async () => {
    const connections = create(2)
    for (let i = 0; i < 3; i++)
      expect(await connections.use(writer('a'), async ({ name }) => name)).toBe(1)
  })

  it('asks a connection that was idle for a minute whether it is still there, and no other', async () => {
    const connections = create(1)
    const name = () => connections.use(writer('a'), async (connection) => connection.name)
    expect(await name()).toBe(1)
    vi.setSystemTime(Date.now() + 59_999)
    expect(await name()).toBe(1)
    expect(asked).toEqual([])
    vi.setSystemTime(Date.now() + 60_000)
    expect(await name()).toBe(1)
    expect(asked).toEqual([1])
    expect(discarded).toEqual([])
  })

  it('asks a connection also when the clock was set back, by which nothing says how long it was idle', async () => {
    const connections = create(1)
    const name = () => connections.use(writer('a'), async (connection) => connection.name)
    await name()
    vi.setSystemTime(Date.now() - 3_600_000)
    expect(await name()).toBe(1)
    expect(asked).toEqual([1])
  })

  it.each([
    ['does not answer', never],
    ['answers no more', async () => false],
  ])('renews a connection that was idle for a minute and %s', async (_how, answer) => {
    const connections = create(1)
    const name = () => connections.use(writer('a'), async (connection) => connection.name)
    await name()
    vi.setSystemTime(Date.now() + 60_000)
    isAlive = answer
    const next = name()
    await vi.advanceTimersByTimeAsync(250)
    expect(await next).toBe(2)
    expect(discarded).toEqual([1])
  })

  it('renews a connection that is half an hour old, between two uses', async () => {
    const connections = create(1)
    const name = () => connections.use(writer('a'), async (connection) => connection.name)
    for (let second = 0; second < 1_800; second += 50) {
      expect(await name()).toBe(1)
      vi.setSystemTime(Date.now() + 50_000)
    }
    expect(await name()).toBe(2)
    expect(discarded).toEqual([1])
  })

  it('closes connections that were not used for five minutes, and keeps those that were', async () => {
    const timers = ownTimers()
    const connections = create(3)
    const busy = () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      return { used: connections.use(writer('a'), () => promise), resolve }
    }
    const all = [busy(), busy(), busy()]
    await vi.advanceTimersByTimeAsync(0)
    for (const { used, resolve } of all) {
      resolve()
      await used
    }
    const name = () => connections.use(writer('a'), async (connection) => connection.name)
    await vi.advanceTimersByTimeAsync(200_000)
    expect(await name()).toBe(3)
    await vi.advanceTimersByTimeAsync(200_000)
    expect(discarded).toEqual([1, 2])
    expect(await name()).toBe(3)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(discarded).toEqual([1, 2, 3])
    expect(timers.left()).toBe(0)
    expect(await name()).toBe(4)
  })

  it('closes a connection that was given to work which gave up in that very moment, once it was idle for five minutes', async () => {
    const timers = ownTimers()
    const { use, pool } = create(1)
    const done = Promise.withResolvers<void>()
    const served = use(writer('a'), () => done.promise)
    const late = Promise.withResolvers<never>()
    const waited = Promise.allSettled([
      pool.use(writer('b'), { passed: late.promise, leftMs: () => 0 }, async ({ name }) => name),
    ])
    await vi.advanceTimersByTimeAsync(0)
    done.resolve()
    late.reject(new Error('too late'))
    await served
    expect(await waited).toEqual([{ status: 'rejected', reason: new Error('too late') }])
    await vi.advanceTimersByTimeAsync(600_000)
    expect(discarded).toEqual([1])
    expect(timers.left()).toBe(0)
    expect(await use(writer('c'), async ({ name }) => name)).toBe(2)
  })

  it('takes a connection that is open before it opens another one', async () => {
    const connections = create(2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const kept = connections.use(writer('a'), () => promise)
    const lost = connections.use(writer('b'), async () => {
      throw new RangeError('harmful')
    })
    resolve()
    await kept
    await expect(lost).rejects.toThrow('harmful')
    expect(await connections.use(writer('c'), async ({ name }) => name)).toBe(1)
    expect(opened).toBe(2)
  })

  it('begins no work whose time has passed while its connection was asked, and loses no place', async () => {
    const { use, pool } = create(1)
    await use(writer('a'), async () => {})
    vi.setSystemTime(Date.now() + 60_000)
    const answered = Promise.withResolvers<boolean>()
    isAlive = () => answered.promise
    const worked: string[] = []
    const late = Promise.allSettled([
      withDeadline({ deadlineMs: 100, now: Date.now }, (deadline) =>
        pool.use(writer('a'), deadline, async () => worked.push('late')),
      ),
    ])
    await vi.advanceTimersByTimeAsync(100)
    answered.resolve(true)
    expect(await late).toEqual([
      {
        status: 'rejected',
        reason: new StorageUnavailable('the database did not answer within 100 ms'),
      },
    ])
    expect(worked).toEqual([])
    expect(await use(writer('a'), async ({ name }) => name)).toBe(1)
    expect(discarded).toEqual([])
  })

  it('loses no place to a connection that cannot even be made', async () => {
    const connections = create(1)
    opensFail = true
    for (let times = 0; times < 2; times++) {
      await expect(connections.use(writer('a'), never)).rejects.toThrow('the address is none')
    }
    opensFail = false
    expect(await connections.use(writer('a'), async ({ name }) => name)).toBe(1)
  })

  it('gives waiting work its turn in order', async () => {
    const connections = create(1)
    const order: string[] = []
    const work = (mark: string) => connections.use(writer(mark), async () => order.push(mark))
    await Promise.all([work('first'), work('second'), work('third')])
    expect(order).toEqual(['first', 'second', 'third'])
    expect(opened).toBe(1)
  })

  it('gives one owner no more than its share, and others what is left', async () => {
    const connections = create(3, 2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started: string[] = []
    const work = (owner: string) =>
      connections.use(writer(owner), async () => {
        started.push(owner)
        await promise
      })
    const all = [work('a'), work('a'), work('a'), work('b'), work('b')]
    await vi.advanceTimersByTimeAsync(0)
    expect(started).toEqual(['a', 'a', 'b'])
    resolve()
    await Promise.all(all)
    expect(started).toEqual(['a', 'a', 'b', 'a', 'b'])
  })

  it('keeps half of itself from reads, so that a write waits for none of them', async () => {
    const connections = create(4, 2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started: string[] = []
    const work = (name: string, user: ReturnType<typeof writer>) =>
      connections.use(user, async () => {
        started.push(name)
        await promise
      })
    const owners = ['a', 'a', 'b', 'c']
    const reads = owners.map((owner) => work(`${owner} reads`, reader(owner)))
    const write = connections.use(writer('a'), async () => started.push('a writes'))
    await vi.advanceTimersByTimeAsync(0)
    expect(started).toEqual(['a reads', 'a reads', 'a writes'])
    resolve()
    await Promise.all([...reads, write])
    expect(started.slice(3)).toEqual(['b reads', 'c reads'])
  })

  it('keeps half of itself from work that waits for locked rows', async () => {
    const connections = create(4, 2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started: string[] = []
    const waits = ['a', 'b', 'c'].map((owner) =>
      connections.use({ ...writer(owner), waits: true }, async () => {
        started.push(`${owner} waits`)
        await promise
      }),
    )
    const write = connections.use(writer('c'), async () => started.push('c writes'))
    await vi.advanceTimersByTimeAsync(0)
    expect(started).toEqual(['a waits', 'b waits', 'c writes'])
    resolve()
    await Promise.all([...waits, write])
    expect(started.slice(3)).toEqual(['c waits'])
  })

  it('replaces a connection whose work passed the deadline', async () => {
    const connections = create(2)
    const results = Promise.allSettled([
      connections.use(writer('a'), never),
      connections.use(writer('b'), never),
    ])
    await vi.advanceTimersByTimeAsync(1000)
    for (const result of await results) {
      expect(result).toMatchObject({
        status: 'rejected',
        reason: new StorageUnavailable('the database did not answer within 1000 ms'),
      })
    }
    expect(discarded).toEqual([1, 2])
    expect(await connections.use(writer('c'), async ({ name }) => name)).toBe(3)
  })

  it('begins no work whose deadline has passed, and loses no connection to it', async () => {
    const { use, pool } = create(1)
    await use(writer('a'), async () => {})
    const worked: string[] = []
    const late = withDeadline({ deadlineMs: 1000, now: Date.now }, async (deadline) => {
      await deadline.passed.catch(() => {})
      return pool.use(writer('a'), deadline, async () => worked.push('late'))
    })
    const ends = Promise.allSettled([late])
    await vi.advanceTimersByTimeAsync(1000)
    expect(await ends).toEqual([
      {
        status: 'rejected',
        reason: new StorageUnavailable('the database did not answer within 1000 ms'),
      },
    ])
    expect(worked).toEqual([])
    expect(discarded).toEqual([])
    expect(await use(writer('a'), async ({ name }) => name)).toBe(1)
  })

  it('keeps a connection after a harmless failure and replaces it after any other', async () => {
    const connections = create(1)
    const fail = (error: Error) =>
      connections.use(writer('a'), async () => {
        throw error
      })
    await expect(fail(new TypeError('harmless'))).rejects.toThrow('harmless')
    expect(await connections.use(writer('a'), async ({ name }) => name)).toBe(1)
    await expect(fail(new RangeError('harmful'))).rejects.toThrow('harmful')
    expect(await connections.use(writer('a'), async ({ name }) => name)).toBe(2)
  })
})
