import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import {
  createConnectionPool,
  type PooledConnection,
} from '../../../src/worker/storage/connection-pool.ts'

interface TestConnection extends PooledConnection {
  readonly name: number
}

const never = () => new Promise<never>(() => {})

describe('a pool of connections', () => {
  let opened = 0
  let discarded: number[] = []
  const create = (size: number, share = size) =>
    createConnectionPool<TestConnection>({
      open: () => {
        const name = ++opened
        return { name, discard: () => discarded.push(name) }
      },
      size,
      share,
      deadlineMs: 1000,
      survives: (error) => !(error instanceof RangeError),
    })

  beforeEach(() => {
    vi.useFakeTimers()
    opened = 0
    discarded = []
  })
  afterEach(() => vi.useRealTimers())

  it('opens a connection at its first use and uses it again', async () => {
    const connections = create(2)
    for (let i = 0; i < 3; i++) expect(await connections.use('a', async ({ name }) => name)).toBe(1)
  })

  it('gives waiting work its turn in order', async () => {
    const connections = create(1)
    const order: string[] = []
    const work = (mark: string) => connections.use(mark, async () => order.push(mark))
    await Promise.all([work('first'), work('second'), work('third')])
    expect(order).toEqual(['first', 'second', 'third'])
    expect(opened).toBe(1)
  })

  it('gives one owner no more than its share, and others what is left', async () => {
    const connections = create(3, 2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started: string[] = []
    const work = (owner: string) =>
      connections.use(owner, async () => {
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

  it('replaces a connection whose work passed the deadline', async () => {
    const connections = create(2)
    const results = Promise.allSettled([connections.use('a', never), connections.use('b', never)])
    await vi.advanceTimersByTimeAsync(1000)
    for (const result of await results) {
      expect(result).toMatchObject({
        status: 'rejected',
        reason: new StorageUnavailable('the database did not answer within 1000 ms'),
      })
    }
    expect(discarded).toEqual([1, 2])
    expect(await connections.use('c', async ({ name }) => name)).toBe(3)
  })

  it('keeps a connection after a harmless failure and replaces it after any other', async () => {
    const connections = create(1)
    const fail = (error: Error) =>
      connections.use('a', async () => {
        throw error
      })
    await expect(fail(new TypeError('harmless'))).rejects.toThrow('harmless')
    expect(await connections.use('a', async ({ name }) => name)).toBe(1)
    await expect(fail(new RangeError('harmful'))).rejects.toThrow('harmful')
    expect(await connections.use('a', async ({ name }) => name)).toBe(2)
  })
})
