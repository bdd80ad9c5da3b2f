import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { Context } from '../../../src/worker/context.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import { openSharedLimits } from '../../../src/worker/limits/shared-limits.ts'
import { ledgerWithPauses, listUsage } from '../../../src/worker/usage/handler.ts'
import { deleteKey, NOW, receiptOf, settlementOf } from '../../support/ledger.ts'
import { ownedEndpoints, type OwnedEndpoints, type Owner } from '../../support/owned-endpoint.ts'
import { told } from '../../support/refusal.ts'

let endpoints: OwnedEndpoints
let owner: Owner
const usage = (search = '') => endpoints.ask(listUsage, `/v1/usage${search}`, owner.apiKey)
const settle = (id: string, more: Parameters<typeof settlementOf>[2] = {}) =>
  commitSettlement(endpoints.db, settlementOf(owner, id, more))

beforeEach(async () => {
  endpoints = ownedEndpoints()
  owner = await endpoints.addOwner({ billing: 'postpaid' })
})

describe('GET /v1/usage', () => {
  test('answers every field of a row', async () => {
    await settle('r1', { nano: 1_234_567n, receipt: receiptOf('receipt-1'), failover: true })
    const { status, headers, json } = await usage()
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(json).toEqual({
      data: [
        {
          id: 'r1',
          model: 'nova/glm-5',
          modality: 'chat',
          provider: 'nova',
          region: 'eu',
          billing_unit: 'token',
          audio_seconds: null,
          prompt_tokens: 10,
          completion_tokens: 5,
          cost_eur: 0.001234567,
          discount_applied_pct: 0,
          receipt_id: 'receipt-1',
          failover: true,
          key_prefix: owner.keyPrefix,
          key_name: 'laptop',
          created_at: '2026-11-20T12:00:00.000Z',
        },
      ],
      total_count: 1,
      limit: 100,
      offset: 0,
    })
  })

  test('has no region member for a provider without regions', async () => {
    await settle('r1', { region: null })
    expect((await usage()).text).not.toContain('region')
  })

  test.each([
    [1n, '0.000000001'],
    [0n, '0'],
    [100_000_000n, '0.1'],
    [9_007_199_254_740_993n, '9007199.254740993'],
    [4_000_000_000_000_000_001n, '4000000000.000000001'],
  ])('writes %i nano-EUR as the number %s', async (nano, digits) => {
    await settle('r1', { nano })
    expect((await usage()).text).toContain(`"cost_eur":${digits},`)
  })

  test('needs a key that is not deleted', async () => {
    await settle('r1')
    await deleteKey(endpoints.db, owner)
    const other = await endpoints.ask(listUsage, '/v1/usage', owner.apiKey)
    expect(other).toMatchObject({ status: 401, json: { error: { code: 'unauthorized' } } })
  })

  test('shows nothing of another customer', async () => {
    await settle('r1')
    const stranger = await endpoints.addOwner()
    const { json } = await endpoints.ask(listUsage, '/v1/usage', stranger.apiKey)
    expect(json).toMatchObject({ data: [], total_count: 0 })
    const search = `/v1/usage?key_prefix=${owner.keyPrefix}`
    const filtered = await endpoints.ask(listUsage, search, stranger.apiKey)
    expect(filtered.json).toMatchObject({ data: [], total_count: 0 })
  })

  test('pages without a gap or a repeat, newest first', async () => {
    for (let i = 0; i < 7; i++) await settle(`r${i}`, { createdAtMs: NOW + i })
    const seen: unknown[] = []
    for (let offset = 0; ; offset += 3) {
      const { json } = await usage(`?limit=3&offset=${offset}`)
      expect(json).toMatchObject({ total_count: 7, limit: 3, offset })
      const data = z.array(z.object({ id: z.string() })).parse(json['data'])
      seen.push(...data.map(({ id }) => id))
      if (data.length < 3) break
    }
    expect(seen).toEqual(['r6', 'r5', 'r4', 'r3', 'r2', 'r1', 'r0'])
  })

  test('serves a limit above 1000 as 1000 and says so', async () => {
    expect((await usage('?limit=1001')).json).toMatchObject({ limit: 1000 })
    expect((await usage(`?limit=${'9'.repeat(400)}`)).json).toMatchObject({ limit: 1000 })
    expect((await usage('?limit=1000')).json).toMatchObject({ limit: 1000 })
  })
})

describe('a malformed parameter', () => {
  const WHOLE_1 = 'a whole number of at least 1, given once.'
  const WHOLE_0 = 'a whole number of at least 0, given once.'
  const TIME = 'an RFC 3339 timestamp such as 2026-01-31T12:00:00Z, given once.'
  const TEXT = 'text that is not empty, given once.'
  test.each([
    ['limit', '', WHOLE_1],
    ['limit', '0', WHOLE_1],
    ['limit', '-1', WHOLE_1],
    ['limit', '1.5', WHOLE_1],
    ['limit', '1e2', WHOLE_1],
    ['limit', 'all', WHOLE_1],
    ['limit', '%2B5', WHOLE_1],
    ['limit', '5&limit=6', WHOLE_1],
    ['offset', '-1', WHOLE_0],
    ['offset', 'x', WHOLE_0],
    ['offset', '9999999999999999999999', WHOLE_0],
    ['start', '', TIME],
    ['start', '2026-11-20', TIME],
    ['start', '1795176000', TIME],
    ['start', '2026-11-20T12:00:00', TIME],
    ['start', '2026-02-30T12:00:00Z', TIME],
    ['start', '2026-11-20T25:00:00Z', TIME],
    ['end', 'yesterday', TIME],
    ['end', '2026-11-20T12:00Z', TIME],
    ['end', '2026-11-20T12:00:00%2B0100', TIME],
    ['model', '', TEXT],
    ['model', 'a%00b', TEXT],
    ['key_prefix', '', TEXT],
  ])('%s=%s is refused by name', async (param, value, expected) => {
    const { status, json } = await usage(`?${param}=${value}`)
    expect(status).toBe(400)
    expect(json).toEqual({
      error: {
        message: `The query parameter \`${param}\` must be ${expected}`,
        type: 'invalid_request_error',
        code: 'invalid_parameter',
        param,
      },
    })
  })
})

describe('the rest after a read', () => {
  /** A read of 10 ms, for which the turn comes after a second or is refused. */
  function startRead({ refused = false } = {}) {
    let clock = NOW
    const now = () => clock
    const kept: Promise<unknown>[] = []
    const shared = openSharedLimits(now)
    const inTurn: Context['inTurn'] = async (_cost, work) => {
      clock += 1_000
      if (refused) throw new ApiError('rate_limit_exceeded', 'Too many.')
      return work(() => {})
    }
    const batch = async () => {
      clock += 10
      return [[]]
    }
    const storage = { customer: () => ({ batch }), directory: () => ({ batch }) }
    const waitUntil = (work: Promise<unknown>) => void kept.push(work)
    const { signal: client } = new AbortController()
    const context = { storage, shared, now, client, inTurn, waitUntil }
    const ledger = ledgerWithPauses(owner.customerId, context)
    return { reading: ledger.read([{ sql: 'SELECT 1', params: [] }]), kept }
  }

  test.each([
    [false, 30],
    [true, 0],
  ])(
    'is three times as long as the read, whatever its turn took (refused: %s)',
    async (refused, ms) => {
      vi.useFakeTimers()
      onTestFinished(() => void vi.useRealTimers())
      const { reading, kept } = startRead({ refused })
      const refusal = { code: 'rate_limit_exceeded', message: 'Too many.' }
      expect(await reading.catch(told)).toEqual(refused ? refusal : [[]])
      // The read itself is kept alive first.
      expect(kept).toHaveLength(2)
      let isOver = false
      void kept[1]?.then(() => (isOver = true))
      await vi.advanceTimersByTimeAsync(Math.max(ms - 1, 0))
      expect(isOver).toBe(ms === 0)
      await vi.advanceTimersByTimeAsync(1)
      expect(isOver).toBe(true)
    },
  )
})

describe('what fails', () => {
  test('a missing key is unauthorized', async () => {
    const { status, json } = await endpoints.ask(listUsage, '/v1/usage')
    expect(status).toBe(401)
    expect(json).toMatchObject({ error: { code: 'unauthorized', type: 'authentication_error' } })
  })

  test('a ledger that cannot be queried is an internal error that asks for a retry', async () => {
    endpoints.fault.of = (batch) =>
      batch.some(({ sql }) => sql.includes('FROM usage')) ? new Error('no such table') : undefined
    const { status, headers, json } = await usage()
    expect(status).toBe(500)
    expect(headers.get('retry-after')).toBe('5')
    expect(json).toEqual({
      error: {
        message: 'The ledger could not be queried.',
        type: 'server_error',
        code: 'internal',
        param: null,
      },
    })
  })

  test.each(['', '?model=nova/glm-5'])(
    'a query while too many of the customer wait is refused as such (%s)',
    async (search) => {
      const endless = { now: () => NOW, pause: () => new Promise<void>(() => {}) }
      for (let count = 0; count < 17; count++) {
        void endpoints.shared.queries.enter(owner.customerId, 1, endless)
      }
      const { status, headers, json } = await usage(search)
      expect(status).toBe(429)
      expect(headers.get('retry-after')).toBe('1')
      expect(json).toEqual({
        error: {
          message: 'Too many reads are in progress. Try again in a second, with fewer at a time.',
          type: 'rate_limit_error',
          code: 'rate_limit_exceeded',
          param: null,
        },
      })
    },
  )

  test('a storage that does not answer is unavailable', async () => {
    endpoints.fault.of = () => new StorageUnavailable('away')
    const { status, headers, json } = await usage()
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('2')
    expect(json).toMatchObject({
      error: { code: 'service_unavailable', message: 'The storage cannot be reached.' },
    })
  })
})
