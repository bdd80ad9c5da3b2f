import { rmSync, writeFileSync } from 'node:fs'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import type { Database } from '../../src/worker/storage/database.ts'
import { numberOf } from '../../src/worker/storage/row.ts'
import { sql } from '../../src/worker/storage/sql.ts'
import { errorOf, usageOf } from '../support/answers.ts'
import { inPostgres, ledgerFileOf } from '../support/crash/ledger-access.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import { GATED, startGatedProvider, type GatedProvider } from '../support/gated-provider.ts'
import { one } from '../support/ledger.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { startStack, temporaryDirectory, until, type Stack } from '../support/stack.ts'
import { standinOf } from '../support/standin.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

const CHAT = { model: 'glm-5', max_tokens: 100 }
const STREAM = { ...CHAT, stream: true }
const OPENING_EUR = '5.00'

/** Open requests of the router; one customer alone may have half of them. */
const PLACES = 32
const HOURS_MS = 3_600_000

/** A ledger that answers, but has not one of its tables. */
const hideLedger = (db: Database) => db.batch([sql`ALTER TABLE usage RENAME TO hidden`])
const showLedger = (db: Database) => db.batch([sql`ALTER TABLE hidden RENAME TO usage`])

function get(stack: Stack, customer: TestCustomer, path: string): Promise<Response> {
  return fetch(stack.local.base_url + path, {
    headers: { authorization: `Bearer ${customer.key}` },
  })
}

/** Everything that a customer may ask and that needs the storage. */
function askEverything(stack: Stack, customer: TestCustomer): Promise<Response[]> {
  return Promise.all([
    chatAs(routerOf(stack), customer, CHAT),
    chatAs(routerOf(stack), customer, STREAM),
    get(stack, customer, '/v1/usage'),
    get(stack, customer, '/v1/receipts/00000000-0000-4000-8000-000000000000'),
  ])
}

async function expectUnavailable(answer: Response): Promise<void> {
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toBe('2')
  const { code, message } = await errorOf(answer)
  expect({ code, message }).toEqual({
    code: 'service_unavailable',
    message: 'The storage cannot be reached.',
  })
}

/** Nothing was billed and, once a sweep was due, nothing is held. */
async function expectUntouched(stack: Stack, customer: TestCustomer): Promise<void> {
  const { base_url, admin_token } = stack.local
  const now = new Date(Date.now() + 6 * HOURS_MS).toISOString()
  await new AdminApi(base_url, admin_token).call('POST', '/admin/maintenance', { now })
  const untouched = { balance_eur: OPENING_EUR, reserved_eur: '0.00' }
  expect(await customer.show()).toMatchObject(untouched)
  const { total_count } = await usageOf(await get(stack, customer, '/v1/usage'))
  expect(total_count).toBe(0)
}

async function openRequests(db: Database): Promise<number> {
  return numberOf(await one(db, sql`SELECT COUNT(*) AS open FROM reservations`), 'open')
}

/** How many transactions wait for a lock of another one. */
async function waitsForLock(db: Database): Promise<number> {
  const waiting = sql`SELECT COUNT(*) AS n FROM pg_locks WHERE NOT granted`
  return numberOf(await one(db, waiting), 'n')
}

/** Locks the row of a customer as another host's transaction does; returns how to end it. */
async function lockCustomer(databaseUrl: string, customerId: string): Promise<() => Promise<void>> {
  const connection = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const [locked, unlock] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = connection.begin(async (tx) => {
    await tx`SELECT 1 FROM customers WHERE customer_id = ${customerId} FOR UPDATE`
    locked.resolve()
    await unlock.promise
  })
  await Promise.race([locked.promise, holding])
  return async () => {
    unlock.resolve()
    await holding
    await connection.end()
  }
}

describe('while PostgreSQL', () => {
  let server: PostgresServer
  let databaseUrl = ''
  let proxy: TcpProxy
  let stack: Stack
  let gated: GatedProvider
  let customer: TestCustomer

  beforeAll(async () => {
    gated = await startGatedProvider(undefined, true)
    server = await startPostgres()
    databaseUrl = await server.createDatabase()
    proxy = await startTcpProxy(Number(new URL(databaseUrl).port))
    const throughProxy = new URL(databaseUrl)
    throughProxy.port = String(proxy.port)
    const env = { STORAGE: 'postgres', DATABASE_URL: throughProxy.href }
    const { config } = gated
    stack = await startStack({ config, env: { ...env, MAX_OPEN_REQUESTS: String(PLACES) } })
  })
  afterAll(async () => {
    await stack.stop()
    await gated.stop()
    await proxy.close()
    await server.stop()
  })

  test('cannot be reached, every answer is 503 and nothing is served or billed', async () => {
    customer = await newCustomer(routerOf(stack), { balance_eur: OPENING_EUR })
    await standinOf(stack).reset()
    await proxy.cut()
    const answers = await askEverything(stack, customer)
    // The router keeps what it found for a quarter of a second, and its supervisor may just have asked.
    await until(async () => (await stack.fetch('/healthz')).status !== 200)
    const health = await stack.fetch('/healthz')
    const jwks = await stack.fetch('/.well-known/jwks.json')
    await proxy.heal()
    for (const answer of [...answers, health, jwks]) await expectUnavailable(answer)
    expect(await standinOf(stack).exchanges()).toEqual([])
    // A storage that was away may take a moment to be found again.
    await expect
      .poll(async () => (await stack.fetch('/healthz')).status, { timeout: 30_000 })
      .toBe(200)
    await expectUntouched(stack, customer)
    expect((await chatAs(routerOf(stack), customer, CHAT)).status).toBe(200)
  })

  test('is away, requests that fail one after the other leave their customer all its places', async () => {
    const eager = await newCustomer(routerOf(stack), { balance_eur: OPENING_EUR })
    expect((await chatAs(routerOf(stack), eager, CHAT)).status).toBe(200)
    await proxy.cut()
    for (let tries = 0; tries < 3; tries++) {
      const answers = await Promise.all(
        Array.from({ length: PLACES / 4 }, () => chatAs(routerOf(stack), eager, CHAT)),
      )
      for (const answer of answers) await expectUnavailable(answer)
    }
    await proxy.heal()
    await expect
      .poll(async () => (await stack.fetch('/healthz')).status, { timeout: 30_000 })
      .toBe(200)
    expect((await chatAs(routerOf(stack), eager, CHAT)).status).toBe(200)
  })

  test('goes away under an answer, a whole one is withheld and free, a stream is cut and billed later', async () => {
    const fields = { balance_eur: OPENING_EUR }
    const patient = await newCustomer(routerOf(stack), fields)
    const streaming = await newCustomer(routerOf(stack), fields)
    gated.close()
    const whole = chatAs(routerOf(stack), patient, { ...CHAT, model: GATED })
    const stream = await chatAs(routerOf(stack), streaming, { ...STREAM, model: GATED })
    await until(() => gated.asked() === 2)
    expect(await inPostgres(databaseUrl, openRequests)).toBe(2)
    await proxy.cut()
    gated.open()
    const text = await stream.text()
    await expectUnavailable(await whole)
    await proxy.heal()
    expect(text).toContain('"code":"service_unavailable"')
    expect(text).not.toContain('[DONE]')
    const rows = async () => (await usageOf(await get(stack, streaming, '/v1/usage'))).data
    await expect.poll(rows, { timeout: 30_000 }).toMatchObject([{ receipt_id: null }])
    expect(await streaming.show()).toMatchObject({ reserved_eur: '0.00' })
    await expectUntouched(stack, patient)
  })

  test('loses the answer to an admission, what was reserved is given back without a sweep', async () => {
    const unlucky = await newCustomer(routerOf(stack), { balance_eur: OPENING_EUR })
    proxy.delayAnswers(500)
    const refused = chatAs(routerOf(stack), unlucky, CHAT)
    // The reservation stands in the database while the word of it is still on its way.
    await expect
      .poll(() => inPostgres(databaseUrl, openRequests), { timeout: 30_000, interval: 20 })
      .toBe(1)
    await proxy.cut()
    await expectUnavailable(await refused)
    proxy.delayAnswers(0)
    await proxy.heal()
    await expect
      .poll(() => inPostgres(databaseUrl, openRequests), { timeout: 30_000, interval: 100 })
      .toBe(0)
    const untouched = { balance_eur: OPENING_EUR, reserved_eur: '0.00' }
    expect(await unlucky.show()).toMatchObject(untouched)
    expect((await chatAs(routerOf(stack), unlucky, CHAT)).status).toBe(200)
  }, 120_000)

  // After ten seconds a waiting request is refused, which is too soon where the machine stands still so long: then once more.
  test('keeps a row of one customer locked, no other customer waits', { retry: 2 }, async () => {
    const router = routerOf(stack)
    const fields = { balance_eur: OPENING_EUR }
    const held = await newCustomer(router, fields)
    const free = await newCustomer(router, fields)
    const ended: string[] = []
    const send = async (name: string, by: TestCustomer) => {
      const { status } = await chatAs(router, by, CHAT)
      ended.push(`${name} ${status}`)
    }
    await send('free', free)
    const unlock = await lockCustomer(databaseUrl, held.id)
    const waiting = Array.from({ length: 6 }, () => send('held', held))
    let served: readonly string[]
    try {
      await until(async () => (await inPostgres(databaseUrl, waitsForLock)) > 0)
      await Promise.all(Array.from({ length: 3 }, () => send('free', free)))
      served = [...ended]
    } finally {
      // Another try begins with no row locked, and with nothing that waits.
      await unlock()
      await Promise.allSettled(waiting)
    }
    expect(served).toEqual(['free 200', 'free 200', 'free 200', 'free 200'])
    expect(ended.slice(4)).toEqual(Array.from({ length: 6 }, () => 'held 200'))
    for (const settled of [held, free]) {
      expect(await settled.show()).toMatchObject({ reserved_eur: '0.00' })
    }
  })

  test('lacks a table of the ledger, the answer is 503 and nothing is billed', async () => {
    customer = await newCustomer(routerOf(stack), { balance_eur: OPENING_EUR })
    await inPostgres(databaseUrl, hideLedger)
    await expectUnavailable(await get(stack, customer, '/v1/usage'))
    await expectUnavailable(await chatAs(routerOf(stack), customer, CHAT))
    await inPostgres(databaseUrl, showLedger)
    await expectUntouched(stack, customer)
  })
})

describe('while the file of the Durable Object', () => {
  test(
    'is no database any more, requests are answered 503 and nothing is served',
    { timeout: 120_000 },
    async () => {
      const stateDir = temporaryDirectory()
      const before = await startStack({ stateDir })
      const owner = await newCustomer(routerOf(before), { balance_eur: OPENING_EUR })
      await before.stop()
      const file = ledgerFileOf(stateDir, owner.id)

      const stack = await startStack({ stateDir })
      try {
        for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
        writeFileSync(file, 'This is no database. '.repeat(1_000))
        process.kill(stack.local.pids.worker, 'SIGKILL')
        await until(() => isUp(stack))
        for (const answer of await askEverything(stack, owner)) await expectUnavailable(answer)
      } finally {
        await stack.stop()
        rmSync(stateDir, { recursive: true, force: true })
      }
    },
  )
})

/** Whether anything answers at the stack's port. */
function isUp(stack: Stack): Promise<boolean> {
  return fetch(`${stack.local.base_url}/.well-known/jwks.json`).then(
    () => true,
    () => false,
  )
}
