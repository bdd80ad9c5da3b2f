import type { DurableObjectId } from '@cloudflare/workers-types'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCoalescer } from '../../../src/worker/batching/coalescer.ts'
import { openSharedLimits } from '../../../src/worker/limits/shared-limits.ts'
import { RequestTurns } from '../../../src/worker/limits/request-turns.ts'
import { pause } from '../../../src/worker/routing/budget.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement, NO_RETRY, storeEvidence } from '../../../src/worker/settle/ledger.ts'
import { ReceiptHeads } from '../../../src/worker/settle/receipt-heads.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { outcomeOf } from '../../../src/worker/storage/batch-outcome.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { createPostgresEngine } from '../../../src/worker/storage/postgres-engine.ts'
import { postgresStorage, type PoolTarget } from '../../../src/worker/storage/postgres-storage.ts'
import { int64, raw, sql } from '../../../src/worker/storage/sql.ts'
import { addCustomer, askOf, readLedgerTotals, settlementOf } from '../../support/ledger.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'

/** Longer than a test may take: what waits for a locked row waits until the row is free. */
const DEADLINE_MS = 300_000

const waited: number[] = []
const HOST = {
  now: Date.now,
  keepAlive: () => {},
  rowWaited: (ms: number) => void waited.push(ms),
}

let server: PostgresServer
let outside: postgres.Sql
let storage: Storage

beforeAll(async () => {
  server = await startPostgres()
  const databaseUrl = await server.createDatabase()
  const engine = createPostgresEngine(
    { databaseUrl },
    { deadlineMs: DEADLINE_MS, idleMs: DEADLINE_MS, now: Date.now, random: Math.random },
  )
  const pool: PoolTarget = {
    batch: (customerId, statements) => outcomeOf(engine.batch(customerId, statements)),
    ledger: (name, items) => engine.ledger.together(name, items),
    ledgerAlone: (name, item) => engine.ledger.alone(name, item),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is one object
  const idFromName = () => ({}) as DurableObjectId
  storage = postgresStorage({ idFromName, get: () => pool }, HOST)
  outside = postgres(databaseUrl, { max: 1, onnotice: () => {} })
}, 120_000)
afterAll(async () => {
  await outside?.end({ timeout: 0 })
  await server?.stop()
})

/** Begins another host's transaction, which keeps locked what it touches; returns how to end it. */
async function begin(
  act: (tx: postgres.TransactionSql) => PromiseLike<unknown>,
): Promise<() => Promise<void>> {
  const [locked, unlocked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = outside.begin(async (tx) => {
    await act(tx)
    locked.resolve()
    await unlocked.promise
  })
  await Promise.race([locked.promise, holding])
  return async () => {
    unlocked.resolve()
    await holding
  }
}

const lock = (customerId: string) =>
  begin((tx) => tx`SELECT 1 FROM customers WHERE customer_id = ${customerId} FOR UPDATE`)

/** Waits until a transaction waits for a lock of another one. */
async function untilOneWaits(): Promise<void> {
  const waiting = sql`SELECT CASE WHEN COUNT(*) > 0 THEN 'yes' ELSE 'no' END AS waits
    FROM pg_locks WHERE NOT granted`
  const waits = () => storage.directory().batch([waiting])
  await expect.poll(waits, { timeout: 60_000 }).toEqual([[{ waits: 'yes' }]])
}

test('a row that another host has locked delays no other customer, neither its admission nor its settled answer', async () => {
  const held = await addCustomer(storage.customer('held'), { id: 'held', balance: 100n })
  const free = await addCustomer(storage.customer('free'), { id: 'free', balance: 100n })
  const keys = { held, free }
  const admitted = (id: 'held' | 'free', request: string) =>
    admit(storage.customer(id), askOf(keys[id], `${id}-${request}`, { nano: 10n }))
  const coalesce = createCoalescer(HOST, {
    maxItems: 64,
    joinTimeoutMs: DEADLINE_MS,
    timeoutError: () => new Error('late'),
  })
  const settled = (id: 'held' | 'free') =>
    coalesce('provider', async () => {
      const settlement = settlementOf(keys[id], `${id}-first`, { nano: 4n })
      await commitSettlement(storage.customer(id), settlement, NO_RETRY)
    })
  await Promise.all([admitted('held', 'first'), admitted('free', 'first')])
  expect(waited).toEqual([])

  const unlock = await lock('held')
  const ended: string[] = []
  const works = [
    settled('held').then(() => ended.push('settled held')),
    settled('free').then(() => ended.push('settled free')),
    admitted('held', 'second').then(() => ended.push('admitted held')),
    admitted('free', 'second').then(() => ended.push('admitted free')),
  ]
  await Promise.all([works[1], works[3]])
  expect(ended.toSorted()).toEqual(['admitted free', 'settled free'])
  await unlock()
  await Promise.all(works)
  expect(ended).toHaveLength(4)
  // Of the customer whose row was locked: at least its settlement and its admission.
  expect(waited.length).toBeGreaterThanOrEqual(2)
  for (const id of ['held', 'free']) {
    const ledger = { balance: 96n, reserved: 10n, rows: 1, open: 1 }
    expect(await readLedgerTotals(storage.customer(id), id)).toEqual(ledger)
  }
}, 120_000)

test('many requests that wait for such a row hold no turn of the worker, and all get what they wait for', async () => {
  const queued = await addCustomer(storage.customer('queued'), { id: 'queued', balance: 1_000n })
  const quick = await addCustomer(storage.customer('quick'), { id: 'quick', balance: 1_000n })
  const { turns: shared } = openSharedLimits(Date.now)
  const inTurn = (id: 'queued' | 'quick', work: (db: Database) => Promise<unknown>) => {
    const turns = new RequestTurns(shared, id, { now: Date.now, pause })
    const db = storage.customer(id, (wait) => turns.yieldDuring(wait))
    return turns.begin({ cost: 1, client: new AbortController().signal }, () => work(db))
  }
  const admitted = (id: 'queued' | 'quick', request: number) => {
    const key = id === 'queued' ? queued : quick
    return inTurn(id, (db) => admit(db, askOf(key, `${id}-${request}`, { nano: 10n })))
  }
  const evidence = { customerId: 'queued', sha256: '00', dataB64: 'AA==', expiresAtMs: Date.now() }
  await admitted('quick', 0)

  const unlock = await lock('queued')
  let ended = 0
  const waiting = Array.from({ length: 24 }, async (_, request) => {
    if (request < 4) await inTurn('queued', (db) => storeEvidence(db, evidence))
    else await admitted('queued', request)
    ended += 1
  })
  for (let request = 1; request <= 5; request += 1) {
    await admitted('quick', request)
  }
  expect(ended).toBe(0)
  await unlock()
  await Promise.all(waiting)
  expect(await readLedgerTotals(storage.customer('queued'), 'queued')).toMatchObject({
    reserved: 200n,
    open: 20,
  })
}, 120_000)

test('what a query keeps on another host of a customer whose erasure ends meanwhile is erased, too', async () => {
  const now = Date.now()
  await addCustomer(storage.customer('erased'), { id: 'erased', balance: 0n })
  await beginErasure(storage.customer('erased'), 'erased', 'ledger-of-nobody', now)
  const commit = await begin(async (tx) => {
    await tx`SELECT 1 FROM customers WHERE customer_id = 'erased' FOR UPDATE`
    await tx`INSERT INTO usage_blocks (customer_id, row_count, first_seq, total_count, totals)
      VALUES ('erased', 1000, 1, 0, '[]')`
  })
  const erasing = sweepAll(storage.directory(), now)
  await untilOneWaits()
  await commit()
  await erasing
  const left = ['usage_blocks', 'erasures'].map(
    (table) => sql`SELECT customer_id FROM ${raw(table)} WHERE customer_id = 'erased'`,
  )
  expect(await storage.directory().batch(left)).toEqual([[], []])
}, 120_000)

describe('the head of receipts', () => {
  const NOW = Date.now()
  const HOUR_MS = 3_600_000

  const store = (sha256: string, expiresAt: number) =>
    storage.directory().batch([
      sql`INSERT INTO receipt_heads (sha256, head, expires_at)
        VALUES (${sha256}, 'a head', ${int64(expiresAt)})`,
    ])
  const isStored = async (sha256: string) => {
    const found = sql`SELECT 1 AS one FROM receipt_heads WHERE sha256 = ${sha256}`
    const [rows = []] = await storage.directory().batch([found])
    return rows.length > 0
  }

  test('that another router keeps for longer while it is swept away stays', async () => {
    await store('longer', NOW)
    await store('over', NOW)
    const commit = await begin(
      (tx) => tx`UPDATE receipt_heads SET expires_at = ${NOW + HOUR_MS} WHERE sha256 = 'longer'`,
    )
    const sweeping = sweepAll(storage.directory(), NOW)
    await untilOneWaits()
    await commit()
    await sweeping
    expect([await isStored('longer'), await isStored('over')]).toEqual([true, false])
  }, 120_000)

  test('that another router sweeps away while a receipt needs it is stored again', async () => {
    await store('needed', NOW)
    const commit = await begin((tx) => tx`DELETE FROM receipt_heads WHERE sha256 = 'needed'`)
    const heads = new ReceiptHeads(storage, () => NOW)
    const remembered = heads.remember({ sha256: 'needed', text: 'a head' }, NOW + HOUR_MS)
    await untilOneWaits()
    await commit()
    await remembered
    expect(await isStored('needed')).toBe(true)
  }, 120_000)
})
