import { beforeEach, describe, expect, test } from 'vitest'
import { admitRequest, refuseUsedUp } from '../../src/worker/admission.ts'
import type { PresentedKey } from '../../src/worker/auth/api-key.ts'
import type { Context } from '../../src/worker/context.ts'
import type { ApiError } from '../../src/worker/http/errors.ts'
import { openSharedLimits } from '../../src/worker/limits/shared-limits.ts'
import { addCustomer, NOW, rejectionOf } from '../support/ledger.ts'
import { openSqlite, sharedStorage } from '../support/sqlite-database.ts'

const clock = { now: NOW }
const now = () => clock.now

let context: Context
let key: PresentedKey
let requests = 0

beforeEach(async () => {
  clock.now = NOW
  const db = openSqlite()
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
    routes: [],
    maxUsageOn: () => ({ promptTokens: 0, completionTokens: 0 }),
    maxDelayMs: 1,
    once: undefined,
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
    await expect(admitted()).resolves.toMatchObject({ customerId: key.customerId })
  })

  test('is the only one, and may repeat a request that has an Idempotency-Key', () => {
    expect(refusal({}, { ...key, keyHash: 'another' })).toBe('goes on')
    expect(refusal({ 'idempotency-key': 'order-1' })).toBe('goes on')
  })
})
