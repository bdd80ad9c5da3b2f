import { describe, expect, test } from 'vitest'
import { updateKey } from '../../../src/worker/admin/keys.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { changeCustomer } from '../../../src/worker/admin/customers.ts'
import { reportLimitReached } from '../../../src/worker/settle/alerts.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { int64, sql } from '../../../src/worker/storage/sql.ts'
import {
  BACK_OFF_MS,
  dropOld,
  listDeliveries,
  queueNew,
  recordAttempt,
  takeDue,
  type DueDelivery,
} from '../../../src/worker/webhooks/outbox.ts'
import { reportChanges, type Observation } from '../../../src/worker/webhooks/watch.ts'
import { addCustomer, askOf, NOW, settlementOf } from '../../support/ledger.ts'

const ALERTS = { balanceBelowNano: 50n }
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** What the outbox of webhooks must do alike on every engine; `instances` are two of the worker. */
export function describeWebhooks(instances: (id: string) => readonly [Database, Database]): void {
  describe('reports to the operator', () => {
    const eventsOf = async (db: Database, customer: string) => {
      const [rows = []] = await db.batch([
        sql`SELECT type, subject, CAST(amount_nano AS TEXT) AS amount FROM webhook_events
          WHERE customer_id = ${customer} ORDER BY created_at, type`,
      ])
      return rows.map(({ type, subject, amount }) => [type, subject, amount])
    }

    test('of a balance are made once, by the bill that takes it below the threshold', async () => {
      const [left, right] = instances('alert-low')
      const key = await addCustomer(left, { id: 'alert-low', balance: 100n })
      for (const [index, nano] of [30n, 30n, 30n].entries()) {
        const id = `alert-low-${index}`
        await admit(left, askOf(key, id, { nano }))
        const settlement = {
          ...settlementOf(key, id, { nano, createdAtMs: NOW + index }),
          alerts: ALERTS,
        }
        await Promise.all([commitSettlement(left, settlement), commitSettlement(right, settlement)])
      }
      expect(await eventsOf(right, 'alert-low')).toEqual([['balance.low', '', '40']])
    })

    test('of a key’s limit are made at four fifths, and at its end once in each period', async () => {
      const [left] = instances('alert-key')
      const key = await addCustomer(left, { id: 'alert-key', billing: 'postpaid' })
      const limits = { limit_eur: 100n, limit_reset: 'daily' } as const
      await updateKey(left, 'alert-key', key.keyPrefix, limits, NOW)
      const bill = async (id: string, nano: bigint, createdAtMs: number) => {
        const settlement = settlementOf(key, `alert-key-${id}`, { nano, createdAtMs })
        await commitSettlement(left, { ...settlement, alerts: ALERTS })
      }
      await bill('1', 79n, NOW)
      expect(await eventsOf(left, 'alert-key')).toEqual([])
      await bill('2', 10n, NOW + 1)
      await bill('3', 5n, NOW + 2)
      await reportLimitReached(left, key, NOW + 3)
      await reportLimitReached(left, key, NOW + 4)
      await bill('4', 6n, NOW + 5)
      const today = [
        ['key.limit_near', key.keyPrefix, '89'],
        ['key.limit_reached', key.keyPrefix, '94'],
      ]
      expect(await eventsOf(left, 'alert-key')).toEqual(today)
      await bill('5', 100n, NOW + DAY_MS)
      expect(await eventsOf(left, 'alert-key')).toEqual([
        ...today,
        ['key.limit_near', key.keyPrefix, '100'],
        ['key.limit_reached', key.keyPrefix, '100'],
      ])
    })

    test('of a limit that leaves no room say what was spent in this period, not in one before', async () => {
      const [left] = instances('alert-period')
      const key = await addCustomer(left, { id: 'alert-period', billing: 'postpaid' })
      const limits = { limit_eur: 100n, limit_reset: 'daily' } as const
      await updateKey(left, 'alert-period', key.keyPrefix, limits, NOW)
      const settlement = settlementOf(key, 'alert-period-1', { nano: 70n, createdAtMs: NOW })
      await commitSettlement(left, { ...settlement, alerts: ALERTS })
      await reportLimitReached(left, key, NOW + DAY_MS)
      expect(await eventsOf(left, 'alert-period')).toEqual([
        ['key.limit_reached', key.keyPrefix, '0'],
      ])
    })

    test('of a customer with thresholds of their own go by those', async () => {
      const [left] = instances('alert-own')
      const key = await addCustomer(left, { id: 'alert-own', balance: 100n })
      const limits = { limit_eur: 100n, limit_reset: 'none' } as const
      await updateKey(left, 'alert-own', key.keyPrefix, limits, NOW)
      await changeCustomer(
        left,
        'alert-own',
        { alert_balance_eur: 75n, alert_key_limit_pct: 50 },
        NOW,
      )
      for (const [index, nano] of [20n, 20n, 20n].entries()) {
        const id = `alert-own-${index}`
        await admit(left, askOf(key, id, { nano }))
        const settlement = settlementOf(key, id, { nano, createdAtMs: NOW + index })
        await commitSettlement(left, { ...settlement, alerts: ALERTS })
      }
      expect(await eventsOf(left, 'alert-own')).toEqual([
        ['balance.low', '', '60'],
        ['key.limit_near', key.keyPrefix, '60'],
      ])
    })

    test('of a change are made once, whichever worker checks, and not of what stays', async () => {
      const [left, right] = instances('watch')
      const lost = (bad: boolean): Observation => ({
        key: 'provider nova',
        bad,
        subject: 'nova',
        onBad: 'provider.proof_lost',
        onGood: 'provider.proof_regained',
      })
      const resting: Observation = {
        key: 'route a',
        bad: true,
        subject: 'a',
        onBad: 'route.resting',
      }
      const look = (db: Database, runId: string, seen: readonly Observation[]) =>
        reportChanges(db, seen, { instance: 'i1', runId, now: NOW })
      expect(await look(left, 'w1', [lost(false)])).toBe(0)
      const both = await Promise.all([
        look(left, 'w2', [lost(true), resting]),
        look(right, 'w3', [lost(true), resting]),
      ])
      expect(both[0] + both[1]).toBe(2)
      expect(await look(right, 'w4', [lost(true), resting])).toBe(0)
      expect(await look(right, 'w5', [lost(false), { ...resting, bad: false }])).toBe(1)
      expect(await look(left, 'w6', [lost(false)])).toBe(0)
    })

    describe('and their deliveries', () => {
      const put = (db: Database, id: string, type: string, createdAt: number) =>
        db.batch([
          sql`INSERT INTO webhook_events (id, type, subject, created_at)
            VALUES (${id}, ${type}, 'nova', ${createdAt})`,
        ])
      const ENDPOINTS = [
        { name: 'ops', events: ['provider.proof_lost', 'route.resting'] },
        { name: 'all', events: ['route.resting'] },
      ] as const
      const mine = (due: readonly DueDelivery[], id: string) =>
        due.filter(({ eventId }) => eventId === id)

      test('go to the endpoints that asked for them, each taken by one of two', async () => {
        const [left, right] = instances('outbox')
        await put(left, 'outbox-1', 'route.resting', NOW)
        await put(left, 'outbox-2', 'provider.proof_lost', NOW)
        await Promise.all([queueNew(left, ENDPOINTS, NOW), queueNew(right, ENDPOINTS, NOW)])
        const taken = (await Promise.all([takeDue(left, NOW), takeDue(right, NOW)])).flat()
        const ends = taken
          .filter(({ eventId }) => eventId.startsWith('outbox-'))
          .map(({ eventId, endpoint }) => `${eventId} ${endpoint}`)
        expect(ends.toSorted()).toEqual(['outbox-1 all', 'outbox-1 ops', 'outbox-2 ops'])
        const body: unknown = JSON.parse(mine(taken, 'outbox-2')[0]?.body ?? '')
        expect(body).toEqual({
          type: 'provider.proof_lost',
          timestamp: new Date(NOW).toISOString(),
          data: { provider: 'nova' },
        })
      })

      test('are tried again with growing pauses, and given up after the last', async () => {
        const [left] = instances('back-off')
        const id = 'back-off-1'
        await put(left, id, 'provider.proof_lost', NOW)
        await queueNew(left, ENDPOINTS, NOW)
        let now = NOW
        for (const wait of BACK_OFF_MS) {
          const [due] = mine(await takeDue(left, now), id)
          expect(due).toMatchObject({ endpoint: 'ops' })
          if (due === undefined) return
          await recordAttempt(left, due, { delivered: false, word: '503' }, now)
          expect(mine(await takeDue(left, now + wait - 1), id)).toEqual([])
          now += wait
        }
        const [last] = mine(await takeDue(left, now), id)
        if (last) await recordAttempt(left, last, { delivered: false, word: 'timeout' }, now)
        const shown = await listDeliveries(left, { limit: 1000, state: 'failed' })
        expect(shown).toContainEqual(
          expect.objectContaining({ id, state: 'failed', attempts: 10, last_result: 'timeout' }),
        )
      })

      test('wait for their pause and not until the old time where the clock was set back', async () => {
        const [left, right] = instances('set-back')
        const ahead = NOW + HOUR_MS
        await put(left, 'set-back-1', 'provider.proof_lost', ahead)
        await put(left, 'set-back-2', 'provider.proof_lost', ahead)
        await queueNew(left, ENDPOINTS, ahead)
        const due = await takeDue(left, ahead)
        const [failed] = mine(due, 'set-back-1')
        if (failed) await recordAttempt(left, failed, { delivered: false, word: '503' }, ahead)
        const [wait = 0] = BACK_OFF_MS
        expect(mine(await takeDue(right, NOW), 'set-back-1')).toEqual([])
        expect(mine(await takeDue(right, NOW + wait - 1), 'set-back-1')).toEqual([])
        expect(mine(await takeDue(right, NOW + wait), 'set-back-1')).toMatchObject([
          { endpoint: 'ops', attempts: 1 },
        ])
        // The attempt that was under way when its worker died has its minute, too.
        expect(mine(await takeDue(right, NOW + 59_999), 'set-back-2')).toEqual([])
        expect(mine(await takeDue(right, NOW + 60_000), 'set-back-2')).toMatchObject([
          { endpoint: 'ops', attempts: 0 },
        ])
      })

      test('are not tried early by a worker whose clock is less than a minute behind', async () => {
        const [left, right] = instances('behind')
        await put(left, 'behind-1', 'provider.proof_lost', NOW)
        await queueNew(left, ENDPOINTS, NOW)
        const [due] = mine(await takeDue(left, NOW), 'behind-1')
        expect(mine(await takeDue(right, NOW - 60_000), 'behind-1')).toEqual([])
        if (due) await recordAttempt(left, due, { delivered: false, word: '503' }, NOW)
        const [wait = 0] = BACK_OFF_MS
        expect(mine(await takeDue(right, NOW - 60_000), 'behind-1')).toEqual([])
        expect(mine(await takeDue(right, NOW - 60_000 + wait), 'behind-1')).toEqual([])
        expect(mine(await takeDue(right, NOW + wait), 'behind-1')).toHaveLength(1)
      })

      test('that were not recorded are taken again: at least once', async () => {
        const [left, right] = instances('crash')
        await put(left, 'crash-1', 'provider.proof_lost', NOW)
        await queueNew(left, ENDPOINTS, NOW)
        expect(mine(await takeDue(left, NOW), 'crash-1')).toHaveLength(1)
        expect(mine(await takeDue(right, NOW + 1), 'crash-1')).toEqual([])
        const [again] = mine(await takeDue(right, NOW + 60_000), 'crash-1')
        expect(again).toMatchObject({ endpoint: 'ops', attempts: 0 })
        if (again) await recordAttempt(right, again, { delivered: true, word: '204' }, NOW)
        expect(mine(await takeDue(left, NOW + 10 * DAY_MS), 'crash-1')).toEqual([])
      })

      test('of one endpoint wait for none of another that has many', async () => {
        const [left] = instances('backlog')
        const endpoints = [
          { name: 'silent', events: ['provider.proof_lost'] },
          { name: 'well', events: ['route.resting'] },
        ] as const
        for (let count = 0; count < 20; count += 1) {
          await put(left, `backlog-silent-${count}`, 'provider.proof_lost', NOW - 1_000)
        }
        await queueNew(left, endpoints, NOW - 1_000)
        await put(left, 'backlog-well', 'route.resting', NOW)
        await queueNew(left, endpoints, NOW)
        const taken = await takeDue(left, NOW)
        const countOf = (name: string) => taken.filter(({ endpoint }) => endpoint === name).length
        expect([countOf('well'), countOf('silent')]).toEqual([1, 16])
        expect(
          (await takeDue(left, NOW)).filter(({ endpoint }) => endpoint === 'silent'),
        ).toHaveLength(4)
      })

      test('are taken together however many messages they are of', async () => {
        const [left] = instances('many')
        const ids = Array.from({ length: 128 }, (_, count) => `many-${count}`)
        for (const [count, id] of ids.entries()) {
          await put(left, id, 'provider.proof_lost', NOW)
          await left.batch([
            sql`INSERT INTO webhook_deliveries (event_id, endpoint, state, next_at, updated_at)
              VALUES (${id}, ${`many-${count % 8}`}, 'pending', ${int64(NOW)}, ${int64(NOW)})`,
          ])
        }
        const taken = await takeDue(left, NOW)
        const mineOfAll = taken.filter(({ eventId }) => eventId.startsWith('many-'))
        expect(new Set(mineOfAll.map(({ eventId }) => eventId))).toEqual(new Set(ids))
      })

      test('are dropped where their event is gone, which an erasure may delete while they are made', async () => {
        const [left, right] = instances('gone-event')
        await put(left, 'gone-event-1', 'route.resting', NOW)
        await queueNew(left, ENDPOINTS, NOW)
        await left.batch([sql`DELETE FROM webhook_events WHERE id = 'gone-event-1'`])
        expect(mine(await takeDue(right, NOW), 'gone-event-1')).toEqual([])
        const [rows] = await left.batch([
          sql`SELECT endpoint FROM webhook_deliveries WHERE event_id = 'gone-event-1'`,
        ])
        expect(rows).toEqual([])
      })

      test('are forgotten after a month', async () => {
        const [left] = instances('forgotten')
        await put(left, 'forgotten-1', 'provider.proof_lost', NOW)
        await queueNew(left, ENDPOINTS, NOW)
        await dropOld(left, NOW + 31 * DAY_MS)
        expect(await listDeliveries(left, { limit: 1000, state: undefined })).toEqual([])
      })
    })
  })
}
