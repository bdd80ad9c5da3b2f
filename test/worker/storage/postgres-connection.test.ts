import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runPostgresBatch } from '../../../src/worker/storage/postgres-batch.ts'
import { openPostgresConnection } from '../../../src/worker/storage/postgres-connection.ts'
import { createPostgresEngine } from '../../../src/worker/storage/postgres-engine.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

/** Longer than a test may take. */
const NEVER_MS = 300_000

const MINUTE_MS = 60_000

const PID = { sql: 'SELECT pg_backend_pid() AS pid', params: [] }

let server: PostgresServer
let databaseUrl = ''
let outside: postgres.Sql

beforeAll(async () => {
  server = await startPostgres()
  databaseUrl = await server.createDatabase()
  outside = postgres(databaseUrl, { max: 2, onnotice: () => {} })
}, 120_000)
afterAll(async () => {
  await outside?.end({ timeout: 0 })
  await server?.stop()
})

const engineOf = (url: string, { now = Date.now, idleMs = NEVER_MS } = {}) =>
  createPostgresEngine(
    { databaseUrl: url },
    { deadlineMs: NEVER_MS, idleMs, now, random: Math.random },
  )

describe('connections to PostgreSQL', () => {
  test('are not renewed in the middle of a batch, whose reads see one snapshot', async () => {
    // The driver would renew a connection of this age.
    const engine = engineOf(`${databaseUrl}?max_lifetime=1`)
    const wait = { sql: 'SELECT pg_sleep(CAST(? AS INTEGER))', params: [2] }
    const isolation = {
      sql: `SELECT current_setting('transaction_isolation') AS isolation WHERE ? = 1`,
      params: [1],
    }
    await engine.batch(null, [PID])
    const [before, , after, level] = await engine.batch(null, [PID, wait, PID, isolation])
    expect(level).toEqual([{ isolation: 'repeatable read' }])
    expect(after).toEqual(before)
  }, 120_000)

  test('that are cut while a batch writes fail that batch, and nothing else of the program', async () => {
    const proxy = await startTcpProxy(Number(new URL(databaseUrl).port))
    const throughProxy = new URL(databaseUrl)
    throughProxy.port = String(proxy.port)
    const connection = openPostgresConnection({ databaseUrl: throughProxy.href })
    expect(await connection.isAlive()).toBe(true)
    const uncaught: unknown[] = []
    const note = (error: unknown) => void uncaught.push(error)
    process.on('uncaughtException', note)
    const sleep = {
      sql: 'WITH s AS (SELECT pg_sleep(CAST(? AS INTEGER))) SELECT * FROM s',
      params: [60],
    }
    const limits = { readMs: NEVER_MS, lockMs: () => NEVER_MS, idleMs: NEVER_MS }
    const batch = { customerId: null, statements: [sleep] }
    const ended = Promise.allSettled([runPostgresBatch(connection.sql, batch, limits)])
    const asleep = async () => {
      const [row] = await outside`SELECT COUNT(*) AS n FROM pg_stat_activity
        WHERE wait_event = 'PgSleep' AND datname = current_database()`
      return row?.['n']
    }
    await expect.poll(asleep, { timeout: 60_000 }).toBe('1')
    await proxy.cut()
    const lost = { status: 'rejected', reason: { code: 'CONNECTION_CLOSED' } }
    expect(await ended).toMatchObject([lost])
    // What nobody catches is reported in the turns of the event loop that follow.
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    process.off('uncaughtException', note)
    expect(uncaught).toEqual([])
    connection.discard()
    await proxy.close()
  }, 120_000)

  test('that what is between has forgotten within a minute are replaced', async () => {
    const proxy = await startTcpProxy(Number(new URL(databaseUrl).port))
    const throughProxy = new URL(databaseUrl)
    throughProxy.port = String(proxy.port)
    let idleMs = 0
    const engine = engineOf(throughProxy.href, { now: () => Date.now() + idleMs })
    const first = await engine.batch('c', [PID])
    proxy.freeze()
    idleMs += MINUTE_MS
    const [[later] = []] = await engine.batch('c', [PID])
    expect(later).toEqual({ pid: expect.any(Number) })
    expect([[later]]).not.toEqual(first)
    await proxy.close()
  }, 120_000)

  test('give back the rows of an operation whose host has gone, also where the database has another default isolation', async () => {
    const strict = await server.createDatabase()
    await outside.unsafe(`ALTER DATABASE ${new URL(strict).pathname.slice(1)}
      SET default_transaction_isolation = 'serializable'`)
    const there = postgres(strict, { max: 2, onnotice: () => {} })
    const proxy = await startTcpProxy(Number(new URL(strict).port))
    const throughProxy = new URL(strict)
    throughProxy.port = String(proxy.port)
    const engine = engineOf(throughProxy.href, { idleMs: 2_000 })
    await engine.batch(null, [PID])
    await there`INSERT INTO customers (customer_id, name, plan, billing, created_at)
      VALUES ('lost', 'lost', 'standard', 'prepaid', 0)`

    const [isLocked, unlock] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = there.begin(async (tx) => {
      await tx`SELECT 1 FROM customers WHERE customer_id = 'lost' FOR UPDATE`
      isLocked.resolve()
      await unlock.promise
    })
    await isLocked.promise
    const entry = JSON.stringify({ request_id: 'r', customer_id: 'lost', amounts: {}, at_ms: 1 })
    const lost = engine.ledger.alone('admit', { customerId: 'lost', plans: '{}', entry })
    const waits = async () => {
      const [row] = await there<{ n: number }[]>`SELECT COUNT(*)::int AS n FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()`
      return row?.n
    }
    await expect.poll(waits, { timeout: 60_000 }).toBe(1)
    proxy.freeze()
    unlock.resolve()
    await holding
    // Waits for the row, which only the end of the lost operation's transaction gives back.
    await there`UPDATE customers SET plan = 'other' WHERE customer_id = 'lost'`
    await Promise.all([proxy.close(), there.end({ timeout: 0 })])
    expect(await lost).toMatchObject({ ok: false, unavailable: true })
  }, 120_000)
})
