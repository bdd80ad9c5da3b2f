import { beforeEach, describe, expect, test } from 'vitest'
import { admitRequest, refuseUsedUp } from '../../src/worker/admission.ts'
import type { PresentedKey } from '../../src/worker/auth/api-key.ts'
import type { Context } from '../../src/worker/context.ts'
import type { ApiError } from '../../src/worker/http/errors.ts'
import { openSharedLimits } from '../../src/worker/limits/shared-limits.ts'
import { updateKey } from '../../src/worker/admin/keys.ts'
import { InstanceWatch } from '../../src/worker/metrics/instance-watch.ts'
import { commitSettlement } from '../../src/worker/settle/ledger.ts'
import { StorageUnavailable, type Database } from '../../src/worker/storage/database.ts'
import { sql } from '../../src/worker/storage/sql.ts'
import { addCustomer, NOW, readLedgerTotals, rejectionOf, settlementOf } from '../support/ledger.ts'
import { catalogueOf, tokenPrice } from '../support/router-config.ts'
import { openSqlite, sharedStorage } from '../support/sqlite-database.ts'

const clock = { now: NOW }
const now = () => clock.now

let context: Context
let db: Database
let key: PresentedKey
let requests = 0

beforeEach(async () => {
  clock.now = NOW
  db = openSqlite()
  key = await addCustomer(db, { balance: 100n })
  const service = {}
  const config = { plans: { standard: { discount_pct: 0, requests_per_minute: 1 } }, service }
  const storage = sharedStorage(db)
  const parts = { config, storage, now, shared: openSharedLimits(now), log: () => {} }
  // An admission takes no other part of a context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  context = parts as unknown as Context
})

const admitted = () =>
  admitRequest({ ...context, requestId: `r${requests++}` }, key, {
    attempts: [],
    constraints: undefined,
    maxUsageOn: () => ({ promptTokens: 0, completionTokens: 0 }),
    maxDelayMs: 1,
    idempotent: undefined,
  })

/** What a new request is told before its body is read. */
function refusal(headers: Record<string, string> = {}, of = key) {
  try {
    refuseUsedUp(new Request('https://router.test/', { headers }), context, of)
    return 'goes on'
  } catch (error) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the function throws nothing else
    const { code, message, details } = error as ApiError
    return { code, message, ...details }
  }
}

const usedUp = (seconds: number) => ({
  code: 'rate_limit_exceeded',
  message: 'This key may send 1 requests per minute.',
  retryAfter: seconds,
  headers: {
    'x-ratelimit-limit-requests': '1',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': `${seconds}s`,
  },
})

describe('a key that has used up its minute', () => {
  beforeEach(async () => {
    await admitted()
    await rejectionOf(admitted())
  })

  test('is refused from memory for five seconds, with the time that is left', () => {
    expect(refusal()).toEqual(usedUp(60))
    clock.now += 4_999
    expect(refusal()).toEqual(usedUp(56))
    clock.now += 1
    expect(refusal()).toBe('goes on')
  })

  test('is not refused beyond its minute', async () => {
    clock.now = NOW + 58_000
    await rejectionOf(admitted())
    expect(refusal()).toEqual(usedUp(2))
    clock.now = NOW + 60_000
    expect(refusal()).toBe('goes on')
    await expect(admitted()).resolves.toMatchObject({ admission: { customerId: key.customerId } })
  })

  test('is the only one, and may repeat a request that has an Idempotency-Key', () => {
    expect(refusal({}, { ...key, keyHash: 'another' })).toBe('goes on')
    expect(refusal({ 'idempotency-key': 'order-1' })).toBe('goes on')
  })
})

describe('a key whose limit leaves no room', () => {
  const works: Promise<unknown>[] = []

  const limit = (nano: bigint) =>
    updateKey(db, key.customerId, key.keyPrefix, { limit_eur: nano }, clock.now)

  /** Has a request refused; returns the limits whose ends were reported by then. */
  async function reportsOfRefusal() {
    expect(await rejectionOf(admitted())).toMatchObject({ code: 'insufficient_quota' })
    await Promise.all(works.splice(0))
    const [rows = []] = await db.batch([
      sql`SELECT limit_nano FROM webhook_events WHERE type = 'key.limit_reached' ORDER BY limit_nano`,
    ])
    return rows.map(({ limit_nano: nano }) => Number(nano))
  }

  beforeEach(async () => {
    const service = { webhooks: {} }
    const parts = {
      ...context,
      config: { plans: { standard: { discount_pct: 0 } }, service },
      watch: new InstanceWatch('instance'),
      waitUntil: (work: Promise<unknown>) => void works.push(work),
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    context = parts as unknown as Context
    await commitSettlement(db, settlementOf(key, 'bill', { nano: 5n, createdAtMs: NOW }))
    await limit(4n)
  })

  test('is reported; a limit that follows on the same day is reported too, a minute later at the latest', async () => {
    expect(await reportsOfRefusal()).toEqual([4])
    await limit(3n)
    clock.now += 60_000
    expect(await reportsOfRefusal()).toEqual([3, 4])
  })

  test('is reported after all where the first report could not be stored', async () => {
    let failures = 1
    const batch: Database['batch'] = (statements) => {
      const isReport = statements.some((one) => one.sql.includes('INSERT INTO webhook_events'))
      if (!isReport || failures-- <= 0) return db.batch(statements)
      return Promise.reject(new StorageUnavailable('full'))
    }
    context = { ...context, storage: sharedStorage({ ...db, batch }) }
    expect(await reportsOfRefusal()).toEqual([])
    clock.now += 60_000
    expect(await reportsOfRefusal()).toEqual([4])
  })
})

describe('a key with models of its own', () => {
  const CHEAP_NANO = 1_000n
  const catalogue = catalogueOf({
    'nova/dear': { pricing: tokenPrice('eur', 100, 0) },
    'nova/cheap': { pricing: tokenPrice('eur', 1, 0) },
  })
  const attempts = catalogue.routes.map((route, entry) => ({
    route,
    entry,
    failover: entry > 0,
    effort: undefined,
  }))

  /** A request for both models, of a customer with this balance; counts what is asked of the ledger. */
  async function open(nano: bigint, limits: Parameters<typeof updateKey>[3]) {
    const one = await addCustomer(db, { id: 'small', balance: nano })
    await updateKey(db, one.customerId, one.keyPrefix, limits, NOW)
    const config = { plans: {}, service: {} }
    const asked = { calls: 0, beforeSecond: async () => {} }
    const batch: Database['batch'] = async (statements) => {
      asked.calls += 1
      if (asked.calls === 2) await asked.beforeSecond()
      return db.batch(statements)
    }
    const storage = sharedStorage({ ...db, batch })
    const parts = { ...context, config, storage, catalogue, requestId: 'ask' }
    const request = () =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no other part of a configuration is read
      admitRequest(parts as unknown as Context, one, {
        attempts,
        constraints: undefined,
        maxUsageOn: () => ({ promptTokens: 1, completionTokens: 0 }),
        maxDelayMs: 1,
        idempotent: undefined,
      })
    return { one, asked, request }
  }

  const reserved = async () => (await readLedgerTotals(db, 'small')).reserved

  test.each([
    ['the balance', CHEAP_NANO, {}],
    ['its limit', 1_000_000n, { limit_eur: CHEAP_NANO }],
  ])('needs no more than they cost of %s', async (_, balance, limit) => {
    const { request } = await open(balance, { models: ['cheap'], ...limit })
    const { attempts: left } = await request()
    expect(left.map(({ route }) => route.id)).toEqual(['nova/cheap'])
    expect(await reserved()).toBe(CHEAP_NANO)
  })

  test.each([
    ['insufficient_balance', CHEAP_NANO - 1n, {}],
    ['insufficient_quota', 1_000_000n, { limit_eur: CHEAP_NANO - 1n }],
  ])('is refused with %s where even they cost too much', async (code, balance, limit) => {
    const { request } = await open(balance, { models: ['cheap'], ...limit })
    expect(await rejectionOf(request())).toMatchObject({ code, status: 402 })
    expect(await reserved()).toBe(0n)
  })

  test('is told that the requested ones are not among them, whatever they cost', async () => {
    const { request } = await open(0n, { models: ['other'] })
    expect(await rejectionOf(request())).toMatchObject({
      code: 'model_not_allowed',
      message: 'This API key may not use the requested model; GET /v1/key lists those it may.',
    })
  })

  test('tries none that its reservation does not cover, where they are changed meanwhile', async () => {
    const { one, asked, request } = await open(CHEAP_NANO, { models: ['cheap'] })
    asked.beforeSecond = async () => {
      await updateKey(db, one.customerId, one.keyPrefix, { models: ['dear'] }, NOW)
    }
    expect(await rejectionOf(request())).toMatchObject({ code: 'model_not_allowed' })
    expect(await reserved()).toBe(0n)
  })

  test('asks the ledger once where the cost is covered', async () => {
    const covered = await open(1_000_000n, { models: ['cheap'] })
    expect((await covered.request()).attempts).toHaveLength(1)
    expect(covered.asked.calls).toBe(1)
  })

  test('is the only one for which the ledger is asked again', async () => {
    const { asked, request } = await open(CHEAP_NANO, {})
    expect(await rejectionOf(request())).toMatchObject({
      code: 'insufficient_balance',
      message: 'The balance does not cover the most that this request may cost.',
    })
    expect(asked.calls).toBe(1)
  })
})
