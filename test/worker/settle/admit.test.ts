import { beforeEach, describe, expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import {
  addCustomer,
  addKey,
  askOf,
  deleteKey,
  NOW,
  readLedgerTotals,
  rejectionOf,
  settlementOf,
  type Plans,
} from '../../support/ledger.ts'
import { openSqlite, type SqliteDatabase } from '../../support/sqlite-database.ts'

const PLANS: Plans = {
  standard: { discount_pct: 0, requests_per_minute: 3, concurrent_requests: 2 },
  gold: { discount_pct: 20 },
  'half.price': { discount_pct: 50, concurrent_requests: 1 },
}

let db: SqliteDatabase
beforeEach(() => {
  db = openSqlite()
})

describe('a key', () => {
  test.each([
    ['of another secret', (key: PresentedKey) => ({ ...key, keyHash: 'another' })],
    ['that was never made', (key: PresentedKey) => ({ ...key, keyPrefix: 'cmr_acme_k9' })],
    ['of a customer who never was', (key: PresentedKey) => ({ ...key, customerId: 'nobody' })],
  ])('%s is unauthorized and leaves nothing', async (_, change) => {
    const key = await addCustomer(db, { balance: 100n })
    const refused = await rejectionOf(admit(db, askOf(change(key), 'r1')))
    expect(refused).toMatchObject({ code: 'unauthorized', message: 'The API key is not valid.' })
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 0 })
  })

  test('that was deleted is unauthorized', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await deleteKey(db, key)
    const refused = await rejectionOf(admit(db, askOf(key, 'r1')))
    expect(refused).toMatchObject({ code: 'unauthorized', message: 'The API key is not valid.' })
  })
})

describe('the balance of a prepaid customer', () => {
  test('is reserved, to the last nano', async () => {
    const key = await addCustomer(db, { balance: 100n })
    const admission = await admit(db, askOf(key, 'r1', { nano: 100n }))
    expect(admission).toEqual({
      customerId: 'acme',
      customerName: 'acme',
      keyPrefix: 'cmr_acme_k1',
      keyName: 'name of k1',
      plan: 'standard',
      discountPct: 0,
      receiptRetentionDays: null,
      models: null,
      minAttestation: null,
      rateLimitHeaders: {},
    })
    expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 100n, rows: 0, open: 1 })
  })

  test('one nano short is refused and leaves nothing', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 60n }))
    const refused = await rejectionOf(admit(db, askOf(key, 'r2', { nano: 41n })))
    expect(refused).toMatchObject({
      code: 'insufficient_balance',
      status: 402,
      message: 'The balance does not cover the most that this request may cost.',
    })
    expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 60n, rows: 0, open: 1 })
  })

  test('failure 30: is compared exactly where a double could not', async () => {
    const key = await addCustomer(db, { balance: 9_007_199_254_740_993n })
    const int64 = 9_007_199_254_740_993n
    const capped = 1_000_000_000_000_000n
    for (let i = 0; i < 9; i++) await admit(db, askOf(key, `r${i}`, { nano: int64 }))
    const rest = int64 - 9n * capped
    await expect(admit(db, askOf(key, 'last', { nano: rest + 1n }))).rejects.toThrow('balance')
    await admit(db, askOf(key, 'last', { nano: rest }))
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: int64, open: 10 })
  })

  test('lets a request that can cost nothing in, at a balance of zero', async () => {
    const key = await addCustomer(db)
    await admit(db, askOf(key, 'r1', { nano: 0n }))
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 1 })
  })

  test('is free again once a request was released, once only', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 100n }))
    await releaseReservation(db, 'r1')
    await releaseReservation(db, 'r1')
    expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 0n, rows: 0, open: 0 })
    await admit(db, askOf(key, 'r2', { nano: 100n }))
  })
})

test('a postpaid customer is never refused for money, however absurd the worst case', async () => {
  const key = await addCustomer(db, { billing: 'postpaid' })
  for (const id of ['r1', 'r2', 'r3']) await admit(db, askOf(key, id, { nano: 10n ** 30n }))
  expect(await readLedgerTotals(db)).toMatchObject({
    balance: 0n,
    reserved: 3n * 10n ** 15n,
    open: 3,
  })
})

test('the same admission twice reserves once', async () => {
  const key = await addCustomer(db, { balance: 100n })
  const plans = { standard: { discount_pct: 0, requests_per_minute: 2 } }
  const ask = askOf(key, 'r1', { nano: 60n, plans })
  const first = await admit(db, ask)
  expect(await admit(db, ask)).toEqual(first)
  expect(await readLedgerTotals(db)).toMatchObject({ reserved: 60n, open: 1 })
})

describe('the plan', () => {
  test.each([
    ['gold', 20, 80n],
    ['half.price', 50, 50n],
    ['standard', 0, 100n],
    ['no longer configured', 0, 100n],
  ])('%s takes %d percent off the reservation', async (plan, discountPct, reserved) => {
    const key = await addCustomer(db, { balance: reserved, plan })
    const admission = await admit(db, askOf(key, 'r1', { nano: 100n, plans: PLANS }))
    expect(admission).toMatchObject({ plan, discountPct })
    expect(await readLedgerTotals(db)).toMatchObject({ reserved })
  })

  test('that is named like a member every object has is no plan', async () => {
    const key = await addCustomer(db, { balance: 1n, plan: 'constructor' })
    expect(await admit(db, askOf(key, 'r1', { plans: PLANS }))).toMatchObject({ discountPct: 0 })
  })

  test('whose name could break out of SQL never reaches it', async () => {
    const key = await addCustomer(db, { balance: 1n })
    const plans = { "x' OR '1": { discount_pct: 0 } }
    await expect(admit(db, askOf(key, 'r1', { plans }))).rejects.toThrow(
      new Error('internal error: a plan name with odd letters'),
    )
  })

  test("a customer's own receipt retention comes with the admission", async () => {
    const key = await addCustomer(db, { retentionDays: 400 })
    expect(await admit(db, askOf(key, 'r1'))).toMatchObject({ receiptRetentionDays: 400 })
  })
})

describe('requests per minute', () => {
  const plans = { standard: { discount_pct: 0, requests_per_minute: 2 } }

  test('are counted in headers and refused beyond the limit until the window ends', async () => {
    const key = await addCustomer(db)
    const at = (id: string, now: number) => admit(db, askOf(key, id, { plans, now }))
    expect((await at('r1', NOW)).rateLimitHeaders).toEqual({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '60s',
    })
    expect((await at('r2', NOW + 10_500)).rateLimitHeaders).toMatchObject({
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '50s',
    })
    const refused = await rejectionOf(at('r3', NOW + 20_000))
    expect(refused).toMatchObject({
      code: 'rate_limit_exceeded',
      status: 429,
      message: 'This key may send 2 requests per minute.',
      details: {
        retryAfter: 40,
        headers: {
          'x-ratelimit-limit-requests': '2',
          'x-ratelimit-remaining-requests': '0',
          'x-ratelimit-reset-requests': '40s',
        },
      },
    })
    await expect(at('r4', NOW + 59_999)).rejects.toThrow('per minute')
    expect((await at('r5', NOW + 60_000)).rateLimitHeaders).toMatchObject({
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '60s',
    })
  })

  test("are each key's own", async () => {
    const key = await addCustomer(db)
    const other = await addKey(db, 'acme', 'k2')
    for (const id of ['r1', 'r2']) await admit(db, askOf(key, id, { plans }))
    await expect(admit(db, askOf(key, 'r3', { plans }))).rejects.toThrow('per minute')
    await admit(db, askOf(other, 'r4', { plans }))
  })

  test('that were refused do not count', async () => {
    const key = await addCustomer(db, { balance: 10n })
    for (let i = 0; i < 5; i++) {
      await expect(admit(db, askOf(key, `no${i}`, { plans, nano: 11n }))).rejects.toThrow('balance')
    }
    const admission = await admit(db, askOf(key, 'r1', { plans, nano: 10n }))
    expect(admission.rateLimitHeaders).toMatchObject({ 'x-ratelimit-remaining-requests': '1' })
  })

  test('are not delayed for ever by a clock that was set back', async () => {
    const key = await addCustomer(db)
    const later = NOW + 86_400_000
    for (const id of ['r1', 'r2']) await admit(db, askOf(key, id, { plans, now: later }))
    expect(await admit(db, askOf(key, 'r3', { plans, now: NOW }))).toMatchObject({
      rateLimitHeaders: { 'x-ratelimit-remaining-requests': '1' },
    })
  })
})

describe('concurrent requests', () => {
  const plans = { standard: { discount_pct: 0, concurrent_requests: 2 } }

  test('are refused beyond the limit, until one ends', async () => {
    const key = await addCustomer(db, { billing: 'postpaid' })
    for (const id of ['r1', 'r2']) await admit(db, askOf(key, id, { plans }))
    const refused = await rejectionOf(admit(db, askOf(key, 'r3', { plans })))
    expect(refused).toMatchObject({
      code: 'rate_limit_exceeded',
      message: 'This key may have 2 requests open at the same time.',
      details: { retryAfter: 1, headers: {} },
    })
    await commitSettlement(db, settlementOf(key, 'r1'))
    await admit(db, askOf(key, 'r4', { plans }))
    await releaseReservation(db, 'r2')
    await admit(db, askOf(key, 'r5', { plans }))
    await expect(admit(db, askOf(key, 'r6', { plans }))).rejects.toThrow('open at the same time')
  })

  test('whose reservation lapsed no longer count, swept or not', async () => {
    const key = await addCustomer(db, { billing: 'postpaid' })
    const expiresAt = NOW + 1000
    for (const id of ['r1', 'r2']) await admit(db, askOf(key, id, { plans, expiresAt }))
    await expect(admit(db, askOf(key, 'r3', { plans, now: NOW + 999 }))).rejects.toThrow('open')
    await admit(db, askOf(key, 'r4', { plans, now: NOW + 1000 }))
  })
})

test('fifty plans of as many discounts stay within the parameters D1 allows', async () => {
  const plans = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [
      `plan-${i}`,
      { discount_pct: i, requests_per_minute: 9 },
    ]),
  )
  const key = await addCustomer(db, { balance: 51n, plan: 'plan-49' })
  const counted = {
    batch: (statements: Parameters<typeof db.batch>[0]) => {
      for (const { params } of statements) expect(params.length).toBeLessThanOrEqual(100)
      return db.batch(statements)
    },
  }
  expect(await admit(counted, askOf(key, 'r1', { plans, nano: 100n }))).toMatchObject({
    discountPct: 49,
  })
})
