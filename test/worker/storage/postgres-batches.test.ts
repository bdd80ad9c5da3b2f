import type postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import type { OperationDeadline } from '../../../src/worker/storage/operation-deadline.ts'
import type { Batch } from '../../../src/worker/storage/postgres-batch.ts'
import {
  createPostgresBatches,
  type OnConnection,
} from '../../../src/worker/storage/postgres-batches.ts'
import { RowWaits } from '../../../src/worker/storage/row-waits.ts'

const LEFT_MS = 10_000

/** How long a batch that waits alone waits for a lock: the database answers before our own time is up. */
const ALONE_MS = LEFT_MS - 250

interface Lock {
  readonly customerId: string
  readonly lockMs: number
}

/**
 * Batches before a database whose rows of customers are locked by `lock`, which throws or waits as the database would. There is
 * one connection for all, and others for what waits for locked rows.
 */
function startBatches(lock: (asked: Lock) => Promise<void>) {
  const asked: Lock[] = []
  const begin = async (
    _isolation: string,
    work: (tx: Pick<postgres.TransactionSql, 'unsafe'>) => Promise<unknown>,
  ) => {
    // The round trip of BEGIN.
    await new Promise((resolve) => setImmediate(resolve))
    let lockMs = 0
    const execute = async (text: string, params: readonly unknown[]) => {
      if (text.includes('lock_timeout')) lockMs = Number(params[0])
      if (!text.includes('FOR UPDATE')) return []
      const one = { customerId: String(params[0]), lockMs }
      asked.push(one)
      await lock(one)
      return []
    }
    const unsafe = (text: string, params: readonly unknown[]) => ({
      execute: () => execute(text, params),
    })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this member of the driver is used
    return work({ unsafe } as unknown as postgres.TransactionSql)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this member of the driver is used
  const sql = { begin } as unknown as postgres.Sql
  const connection = { sql, discard: () => {}, isAlive: async () => true }
  let last: Promise<unknown> = Promise.resolve()
  const onConnection: OnConnection = (user, _deadline, work) => {
    if (user.waits === true) return work(connection)
    const result = last.then(() => work(connection))
    last = result.catch(() => {})
    return result
  }
  const run = createPostgresBatches({ onConnection, rows: new RowWaits(), idleMs: LEFT_MS })
  return { run, asked }
}

const write = (customerId: string): Batch => ({
  customerId,
  statements: [{ sql: 'DELETE FROM notes', params: [] }],
})
const deadlineOf = (leftMs: () => number = () => LEFT_MS): OperationDeadline => ({
  passed: new Promise<never>(() => {}),
  leftMs,
})
const locked = () => Object.assign(new Error('SQLSTATE 55P03'), { code: '55P03' })

describe('batches of a customer whose row is locked', () => {
  it('that begin once another one waits for the row do not wait for it themselves', async () => {
    const unlock = Promise.withResolvers<void>()
    let isLocked = true
    const { run, asked } = startBatches(async ({ lockMs }) => {
      if (lockMs === ALONE_MS) await unlock.promise
      else if (isLocked) throw locked()
    })
    const crowd = Array.from({ length: 3 }, () => run(write('held'), deadlineOf()))
    await expect.poll(() => asked.length, { timeout: 30_000 }).toBe(4)
    const waits = asked.map(({ lockMs }) => lockMs)
    expect(waits.toSorted((a, b) => a - b)).toEqual([1, 1, 250, ALONE_MS])
    isLocked = false
    unlock.resolve()
    expect(await Promise.all(crowd)).toEqual([[[]], [[]], [[]]])
  })

  it('wait for it no longer than the time that is left once they begin', async () => {
    let left = LEFT_MS
    const { run, asked } = startBatches(async () => {
      left = 600
      if (asked.length < 2) throw locked()
    })
    expect(
      await run(
        write('held'),
        deadlineOf(() => left),
      ),
    ).toEqual([[]])
    expect(asked.map(({ lockMs }) => lockMs)).toEqual([250, 350])
    left = 300
    await run(
      write('held'),
      deadlineOf(() => left),
    )
    expect(asked.at(-1)?.lockMs).toBe(50)
  })
})
