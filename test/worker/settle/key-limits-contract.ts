import { describe, expect, test } from 'vitest'
import { listKeysOf, updateKey, type KeyChanges } from '../../../src/worker/admin/keys.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import {
  addCustomer,
  addKey,
  askOf,
  fulfilled,
  NOW,
  refusals,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'

/** How a key's own limits must hold alike on every engine; `instances` are two of the worker. */
export function describeKeyLimits(instances: (id: string) => readonly [Database, Database]): void {
  describe('limits of a key', () => {
    const DAY_MS = 86_400_000

    test('are never exceeded by concurrent requests, and restart in the next period', async () => {
      const [left, right] = instances('capped')
      const key = await addCustomer(left, { id: 'capped', billing: 'postpaid' })
      const other = await addKey(left, 'capped', 'k2')
      await updateKey(left, 'capped', key.keyPrefix, { limit_eur: 50n, limit_reset: 'daily' }, NOW)
      const ends = await Promise.allSettled(
        Array.from({ length: 200 }, (_, index) =>
          admit(index % 2 ? left : right, askOf(key, `capped-${index}`, { nano: 10n })),
        ),
      )
      expect(fulfilled(ends)).toBe(5)
      expect(refusals(ends)).toEqual(['insufficient_quota'])
      const admitted = ends.flatMap((end, i) => (end.status === 'fulfilled' ? [`capped-${i}`] : []))
      await Promise.all(
        admitted.map((id) => commitSettlement(right, settlementOf(key, id, { nano: 10n }))),
      )
      const [view] = (await listKeysOf(left, 'capped', NOW)) ?? []
      expect(view).toMatchObject({
        limit_eur: '0.00000005',
        spent_eur: '0.00000005',
        reserved_eur: '0.00',
        remaining_eur: '0.00',
        resets_at: '2026-11-21T00:00:00.000Z',
      })
      const late = admit(left, askOf(key, 'capped-late', { nano: 1n }))
      expect(await rejectionOf(late)).toMatchObject({
        code: 'insufficient_quota',
        message:
          "What is left of this key's limit does not cover the most that this request may cost.",
      })
      await admit(left, askOf(other, 'capped-other', { nano: 1_000n }))
      const tomorrow = askOf(key, 'capped-tomorrow', { nano: 50n, now: NOW + DAY_MS })
      await admit(left, tomorrow)
      await commitSettlement(
        left,
        settlementOf(key, 'capped-tomorrow', { nano: 20n, createdAtMs: NOW + DAY_MS }),
      )
      const [after] = (await listKeysOf(right, 'capped', NOW + DAY_MS)) ?? []
      expect(after).toMatchObject({ spent_eur: '0.00000002', remaining_eur: '0.00000003' })
    })

    test('count a bill that comes late over the border of a period in the period that has begun', async () => {
      const [left, right] = instances('border')
      const key = await addCustomer(left, { id: 'border', billing: 'postpaid' })
      const limits = { limit_eur: 50n, limit_reset: 'daily' } as const
      await updateKey(left, 'border', key.keyPrefix, limits, NOW)
      const midnight = Date.parse('2026-11-21T00:00:00.000Z')
      const bill = async (db: Database, id: string, nano: bigint, createdAtMs: number) => {
        await admit(db, askOf(key, id, { nano, now: midnight - 1_000 }))
        await commitSettlement(db, settlementOf(key, id, { nano, createdAtMs }))
      }
      await bill(left, 'border-1', 50n, midnight - 900)
      await commitSettlement(
        right,
        settlementOf(key, 'border-2', { nano: 40n, createdAtMs: midnight + 1 }),
      )
      // It waited for a lock, or its host's clock is behind.
      await commitSettlement(
        left,
        settlementOf(key, 'border-3', { nano: 10n, createdAtMs: midnight - 1 }),
      )
      const [view] = (await listKeysOf(left, 'border', midnight + 2)) ?? []
      expect(view).toMatchObject({ spent_eur: '0.00000005', remaining_eur: '0.00' })
      const refused = admit(left, askOf(key, 'border-4', { nano: 1n, now: midnight + 2 }))
      expect(await rejectionOf(refused)).toMatchObject({
        code: 'insufficient_quota',
        message:
          "What is left of this key's limit does not cover the most that this request may cost.",
      })
      await admit(right, askOf(key, 'border-5', { nano: 50n, now: midnight + DAY_MS }))
    })

    test('go on where they were when the clock was set back by more than a minute', async () => {
      const [db] = instances('set-back')
      const key = await addCustomer(db, { id: 'set-back', billing: 'postpaid' })
      const limits = { limit_eur: 50n, limit_reset: 'daily' } as const
      await updateKey(db, 'set-back', key.keyPrefix, limits, NOW)
      for (const [id, createdAtMs] of [
        ['set-back-1', NOW + 30 * DAY_MS],
        ['set-back-2', NOW],
      ] as const) {
        await commitSettlement(db, settlementOf(key, id, { nano: 25n, createdAtMs }))
      }
      const refused = await rejectionOf(admit(db, askOf(key, 'set-back-3', { nano: 1n })))
      expect(refused.code).toBe('insufficient_quota')
      await admit(db, askOf(key, 'set-back-4', { nano: 50n, now: NOW + DAY_MS }))
    })

    test('of requests, tokens and concurrency apply in addition to those of the plan', async () => {
      const [db] = instances('paced')
      const key = await addCustomer(db, { id: 'paced', billing: 'postpaid' })
      const change = (changes: KeyChanges) => updateKey(db, 'paced', key.keyPrefix, changes, NOW)
      const plans = { standard: { discount_pct: 0, requests_per_minute: 100 } }
      const refused = (id: string) => rejectionOf(admit(db, askOf(key, id, { plans })))
      await change({ concurrent_requests: 1 })
      await admit(db, askOf(key, 'paced-1', { plans }))
      expect(await refused('paced-2')).toMatchObject({
        code: 'rate_limit_exceeded',
        message: 'This key may have 1 requests open at the same time.',
      })
      await change({ concurrent_requests: null, tokens_per_minute: 15 })
      await commitSettlement(db, settlementOf(key, 'paced-1'))
      expect(await refused('paced-3')).toMatchObject({
        code: 'rate_limit_exceeded',
        message: 'This key may use 15 tokens per minute.',
      })
      await change({ tokens_per_minute: null, requests_per_minute: 1 })
      expect(await refused('paced-4')).toMatchObject({
        code: 'rate_limit_exceeded',
        message: 'This key may send 1 requests per minute.',
      })
      await admit(db, askOf(key, 'paced-5', { plans, now: NOW + 60_000 }))
    })

    test('of tokens count those of requests that end when no minute runs, in a minute of their own', async () => {
      const [left, right] = instances('long-ones')
      const key = await addCustomer(left, { id: 'long-ones', billing: 'postpaid' })
      await updateKey(left, 'long-ones', key.keyPrefix, { tokens_per_minute: 15 }, NOW)
      const ended = NOW + 61_000
      await admit(left, askOf(key, 'long-1'))
      await commitSettlement(right, settlementOf(key, 'long-1', { createdAtMs: ended }))
      const refused = await rejectionOf(admit(left, askOf(key, 'long-2', { now: ended + 59_999 })))
      expect([refused.code, refused.message, refused.details.retryAfter]).toEqual([
        'rate_limit_exceeded',
        'This key may use 15 tokens per minute.',
        1,
      ])
      await admit(left, askOf(key, 'long-3', { now: ended + 60_000 }))
    })

    test('of time end it, and its models are known at admission', async () => {
      const [db] = instances('timed')
      const key = await addCustomer(db, { id: 'timed', billing: 'postpaid' })
      const changes = {
        expires_at: NOW + 1,
        models: ['glm-5', 'nova/other'],
        min_attestation: 'hardware' as const,
      }
      await updateKey(db, 'timed', key.keyPrefix, changes, NOW)
      const { models, minAttestation } = await admit(db, askOf(key, 'timed-1'))
      expect(models).toEqual(['glm-5', 'nova/other'])
      expect(minAttestation).toBe('hardware')
      const late = await rejectionOf(admit(db, askOf(key, 'timed-2', { now: NOW + 1 })))
      expect([late.code, late.message]).toEqual(['key_expired', 'The API key has expired.'])
    })
  })
}
