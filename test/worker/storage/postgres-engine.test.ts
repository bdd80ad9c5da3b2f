import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Statement } from '../../../src/worker/storage/database.ts'
import { createPostgresEngine } from '../../../src/worker/storage/postgres-engine.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

/** Longer than a test may take. */
const NEVER_MS = 300_000

/** Short enough to be waited for. */
const SOON_MS = 2_000

const UNAVAILABLE = { name: 'StorageUnavailable' }

const ONE = { sql: 'SELECT 1 AS one', params: [] }

let server: PostgresServer
let databaseUrl = ''
let outside: postgres.Sql

beforeAll(async () => {
  server = await startPostgres()
  databaseUrl = await server.createDatabase()
  outside = postgres(databaseUrl, { max: 8, onnotice: () => {} })
  const engine = engineOf(NEVER_MS)
  await engine.batch(null, [ONE])
}, 120_000)
afterAll(async () => {
  await outside?.end({ timeout: 0 })
  await server?.stop()
})

const engineOf = (deadlineMs: number, rules: { url?: string; idleMs?: number } = {}) =>
  createPostgresEngine(
    { databaseUrl: rules.url ?? databaseUrl },
    { deadlineMs, idleMs: rules.idleMs ?? deadlineMs, now: Date.now, random: Math.random },
  )

const secret = (name: string): Statement =>
  sql`INSERT INTO secrets (name, value, created_at) VALUES (${name}, 'x', 0)`

async function storedSecrets(pattern: string): Promise<string[]> {
  const rows = await outside<{ name: string }[]>`
    SELECT name FROM secrets WHERE name LIKE ${pattern} ORDER BY name`
  return rows.map(({ name }) => name)
}

const addCustomer = (id: string) =>
  outside`INSERT INTO customers (customer_id, name, plan, billing, created_at)
    VALUES (${id}, ${id}, 'standard', 'prepaid', 0)`

/** Locks the rows of customers, as another host's transaction does; returns how to end it. */
async function lock(...customers: readonly string[]): Promise<() => Promise<void>> {
  const [locked, unlocked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = outside.begin(async (tx) => {
    await tx`SELECT 1 FROM customers WHERE customer_id IN ${tx(customers)} FOR UPDATE`
    locked.resolve()
    await unlocked.promise
  })
  await Promise.race([locked.promise, holding])
  return async () => {
    unlocked.resolve()
    await holding
  }
}

/** Takes a lock that a statement can wait for; returns how to give it back. */
async function lockKey(key: number): Promise<() => Promise<void>> {
  const [locked, unlocked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = outside.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${key})`
    locked.resolve()
    await unlocked.promise
  })
  await Promise.race([locked.promise, holding])
  return async () => {
    unlocked.resolve()
    await holding
  }
}

/** How many transactions of routers wait for a lock of another one. */
async function lockWaits(): Promise<number> {
  const [row] = await outside<{ n: number }[]>`SELECT COUNT(*)::int AS n FROM pg_stat_activity
    WHERE application_name = 'confidential-model-router' AND wait_event_type = 'Lock'
      AND datname = current_database()`
  return row?.n ?? -1
}

/** The answer that came first; a later failure of the others is theirs. */
async function firstOf<Answer>(...answers: readonly Promise<Answer>[]): Promise<Answer> {
  for (const answer of answers) answer.catch(() => {})
  return Promise.race(answers)
}

describe('a customer', () => {
  test('who asks much leaves connections for others', async () => {
    const engine = engineOf(NEVER_MS)
    const unlock = await lockKey(1)
    const wait = { sql: 'SELECT pg_advisory_xact_lock(1)', params: [] }
    const crowd = Array.from({ length: 9 }, () => engine.batch('crowd', [wait]))
    const writes = Array.from({ length: 9 }, (_, index) =>
      engine.batch('crowd', [secret(`crowd ${index}`), wait]),
    )
    const first = await firstOf(...crowd, ...writes, engine.batch('other', [ONE]))
    expect(first).toEqual([[{ one: 1 }]])
    const write = await firstOf(...crowd, ...writes, engine.batch('other', [secret('other')]))
    expect(write).toEqual([[]])
    await unlock()
    await Promise.all([...crowd, ...writes])
  }, 120_000)

  test('whose row another host keeps locked keeps no other waiting, however many such customers and batches there are', async () => {
    const engine = engineOf(NEVER_MS)
    const held = ['held 1', 'held 2', 'held 3', 'held 4', 'held 5']
    for (const id of [...held, 'free']) await addCustomer(id)
    const unlock = await lock(...held)
    const waiting = held.flatMap((id) =>
      Array.from({ length: 4 }, (_, index) => engine.batch(id, [secret(`${id} ${index}`)])),
    )
    await expect.poll(lockWaits, { timeout: 60_000 }).toBeGreaterThan(3)
    for (let index = 0; index < 3; index += 1) {
      const served = await firstOf(engine.batch('free', [secret(`free ${index}`)]), ...waiting)
      expect(served).toEqual([[]])
    }
    expect(await storedSecrets('held %')).toEqual([])
    await unlock()
    await Promise.all(waiting)
    expect(await storedSecrets('held %')).toHaveLength(20)
  }, 120_000)
})

/** How many statements of routers the server carries out, beside those that match nothing. */
async function running(pattern: string): Promise<number> {
  const [row] = await outside<{ n: number }[]>`SELECT COUNT(*)::int AS n FROM pg_stat_activity
    WHERE application_name = 'confidential-model-router' AND state = 'active' AND query LIKE ${pattern}`
  return row?.n ?? -1
}

const patiently = { timeout: 60_000 }

describe('what a router has given up', () => {
  test('does not wait at the server for a locked row any more', async () => {
    const engine = engineOf(SOON_MS)
    await addCustomer('late')
    const unlock = await lock('late')
    const writes = Array.from({ length: 3 }, () => engine.batch('late', [secret('late')]))
    for (const end of await Promise.allSettled(writes)) {
      expect(end).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    }
    await expect.poll(lockWaits, patiently).toBe(0)
    await unlock()
    expect(await storedSecrets('late')).toEqual([])
  }, 120_000)

  test('is not read on at the server', async () => {
    const engine = engineOf(SOON_MS)
    const endless = { sql: 'SELECT pg_sleep(100000)', params: [] }
    const reads = [engine.batch('reader', [endless]), engine.batch('reader', [ONE, endless])]
    for (const end of await Promise.allSettled(reads)) {
      expect(end).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    }
    await expect.poll(() => running('%pg_sleep(100000)%'), patiently).toBe(0)
  }, 120_000)

  test('gives back its rows although the host has gone without a word, and writes nothing', async () => {
    const proxy = await startTcpProxy(Number(new URL(databaseUrl).port))
    const throughProxy = new URL(databaseUrl)
    throughProxy.port = String(proxy.port)
    const engine = engineOf(NEVER_MS, { url: throughProxy.href, idleMs: SOON_MS })
    await addCustomer('lost')
    await engine.batch(null, [ONE])
    const unlock = await lockKey(2)
    const wait = { sql: 'SELECT pg_advisory_xact_lock_shared(2)', params: [] }
    const lost = engine.batch('lost', [secret('lost'), wait])
    await expect.poll(lockWaits, patiently).toBe(1)
    proxy.freeze()
    await unlock()
    await outside`UPDATE customers SET plan = 'other' WHERE customer_id = 'lost'`
    expect(await storedSecrets('lost')).toEqual([])
    await Promise.all([proxy.close(), expect(lost).rejects.toMatchObject(UNAVAILABLE)])
  }, 120_000)
})

describe('connections', () => {
  test('are lost by no batch that takes too long', async () => {
    const engine = engineOf(SOON_MS)
    const endless = { sql: 'SELECT pg_sleep(100000)', params: [] }
    const sleepers = Array.from({ length: 12 }, (_, index) =>
      engine.batch(`sleeper ${index % 4}`, [endless]),
    )
    for (const end of await Promise.allSettled(sleepers)) {
      expect(end).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    }
    // All at once: each of the eight must have been replaced. On a slow machine some may be late once more.
    const ask = () =>
      Promise.all(Array.from({ length: 8 }, (_, index) => engine.batch(`asker ${index}`, [ONE])))
    await expect.poll(() => ask().then((answers) => answers.length, String), patiently).toBe(8)
  }, 120_000)
})
