import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  releaseReservation,
  storeEvidence,
} from '../../../src/worker/settle/ledger.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { usageLedgerOf } from '../../../src/worker/usage/ledger.ts'
import { readUsagePage } from '../../../src/worker/usage/page.ts'
import { readUsageQuery } from '../../../src/worker/usage/query.ts'
import { usageRowJson } from '../../../src/worker/usage/row-json.ts'
import {
  addCustomer,
  askOf,
  deleteKey,
  fulfilled,
  NOW,
  one,
  readLedgerTotals,
  receiptOf,
  refusals,
  settlementOf,
} from '../../support/ledger.ts'
import { describeAdministration } from '../admin/contract.ts'
import { describeSessions } from '../auth/session-contract.ts'
import { describeHistory } from '../history/contract.ts'
import { describeErasure } from './erasure-contract.ts'
import { describeReceiptHeads } from './receipt-heads-contract.ts'
import { describeClaims } from './claims-contract.ts'
import { describeKeyLimits } from './key-limits-contract.ts'
import { describeWebhooks } from './webhooks-contract.ts'

/** A real engine, empty, reached by two instances of the worker. */
export interface LedgerEngine {
  readonly instances: readonly [Storage, Storage]
  stop(): Promise<void>
}

/** What admission, settlement, sweeps and the ledger's pages must do alike on every engine. */
export function describeLedgerContract(engine: string, start: () => Promise<LedgerEngine>) {
  describe(`the ledger on ${engine}`, () => {
    let running: LedgerEngine | undefined
    beforeAll(async () => {
      running = await start()
    }, 60_000)
    afterAll(() => running?.stop())

    const instances = (id: string): readonly [Database, Database] => {
      if (!running) throw new Error('not started')
      return [running.instances[0].customer(id), running.instances[1].customer(id)]
    }

    test('exactly as many racing requests are admitted as the balance covers', async () => {
      const [left, right] = instances('race')
      const key = await addCustomer(left, { id: 'race', balance: 50n })
      const racers = Array.from({ length: 20 }, (_, index) =>
        admit(index % 2 ? left : right, askOf(key, `race-${index}`, { nano: 10n })),
      )
      const ends = await Promise.allSettled(racers)
      expect(fulfilled(ends)).toBe(5)
      expect(refusals(ends)).toEqual(['insufficient_balance'])
      const ledger = { balance: 50n, reserved: 50n, rows: 0, open: 5 }
      expect(await readLedgerTotals(left, 'race')).toEqual(ledger)
    })

    test('limits hold for racing requests too', async () => {
      const [left, right] = instances('limits')
      const key = await addCustomer(left, { id: 'limits', billing: 'postpaid' })
      const plans = {
        standard: { discount_pct: 0, concurrent_requests: 4, requests_per_minute: 6 },
      }
      const race = (wave: string) =>
        Promise.allSettled(
          Array.from({ length: 12 }, (_, index) =>
            admit(index % 2 ? left : right, askOf(key, `${wave}-${index}`, { plans })),
          ),
        )
      const first = await race('first')
      expect(fulfilled(first)).toBe(4)
      const open = first.flatMap((end, i) => (end.status === 'fulfilled' ? [`first-${i}`] : []))
      await Promise.all(open.map((id) => releaseReservation(right, id)))
      expect(fulfilled(await race('second'))).toBe(2)
    })

    describeKeyLimits(instances)
    describeClaims(instances)
    describeWebhooks(instances)
    describeAdministration(instances)
    describeSessions(instances)
    describeHistory(instances)
    describeErasure(instances)
    describeReceiptHeads(instances)

    test('settling a request many times at once bills it once', async () => {
      const [left, right] = instances('once')
      const key = await addCustomer(left, { id: 'once', balance: 1000n })
      await admit(left, askOf(key, 'once-1', { nano: 100n }))
      const settlement = settlementOf(key, 'once-1', {
        nano: 30n,
        receipt: receiptOf('once-receipt'),
      })
      await Promise.all([left, right, left, right].map((db) => commitSettlement(db, settlement)))
      const ledger = { balance: 970n, reserved: 0n, rows: 1, open: 0 }
      expect(await readLedgerTotals(right, 'once')).toEqual(ledger)
      const receipt = await one(
        right,
        sql`SELECT jws, body_state, created_at FROM receipts WHERE receipt_id = 'once-receipt'`,
      )
      const { jws } = receiptOf('once-receipt')
      expect(receipt).toEqual({ jws, body_state: 0, created_at: NOW })
    })

    test('rows settled at once are numbered without a gap and in the order of their times', async () => {
      const [left, right] = instances('order')
      const key = await addCustomer(left, { id: 'order', billing: 'postpaid' })
      const settlements = Array.from({ length: 24 }, (_, index) =>
        commitSettlement(
          index % 2 ? left : right,
          settlementOf(key, `order-${index}`, { createdAtMs: NOW + ((index * 7) % 24), nano: 1n }),
        ),
      )
      await Promise.all(settlements)
      expect(await readLedgerTotals(left, 'order')).toMatchObject({ balance: -24n, rows: 24 })
      const { rows, total } = await pageOf(right, 'order', 'limit=1000')
      const times = rows.map((row) => Number(row['created_at']))
      expect(times).toEqual(times.toSorted((a, b) => b - a))
      expect(total).toBe(24)
    })

    describe('pages', () => {
      let key: PresentedKey
      let db: Database

      beforeAll(async () => {
        db = instances('pages')[0]
        key = await addCustomer(db, { id: 'pages', billing: 'postpaid' })
        for (let i = 0; i < 10; i++) {
          const model = i % 3 === 0 ? 'nova/other' : 'nova/glm-5'
          const settlement = settlementOf(key, `p${i}`, { createdAtMs: NOW + i * 1000, model })
          await commitSettlement(db, settlement)
        }
      })

      test.each([
        ['', [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 10],
        ['limit=3', [9, 8, 7], 10],
        ['limit=3&offset=8', [1, 0], 10],
        ['offset=10', [], 10],
        ['offset=999999999999999', [], 10],
        ['start=2026-11-20T12:00:03Z', [9, 8, 7, 6, 5, 4, 3], 7],
        ['start=2026-11-20T12:00:03.0000001Z', [9, 8, 7, 6, 5, 4], 6],
        ['end=2026-11-20T12:00:03Z', [3, 2, 1, 0], 4],
        ['end=2026-11-20T12:00:02.999Z&limit=2', [2, 1], 3],
        ['start=2026-11-20T13:00:02%2B01:00&end=2026-11-20T12:00:04Z&offset=1', [3, 2], 3],
        ['start=2026-11-20T12:00:04Z&end=2026-11-20T12:00:02Z', [], 0],
        ['start=2027-01-01T00:00:00Z', [], 0],
        ['end=1969-01-01T00:00:00Z', [], 0],
        ['model=nova/other', [9, 6, 3, 0], 4],
        ['model=nova/other&offset=1&limit=2', [6, 3], 4],
        ['model=nova/other&start=2026-11-20T12:00:03Z', [9, 6, 3], 3],
        ['model=nova/other&offset=4', [], 4],
        ['model=NOVA/other', [], 0],
        ['key_prefix=cmr_pages_k1&limit=1', [9], 10],
        ['key_prefix=cmr_pages_k2', [], 0],
        ['key_prefix=cmr_pages_k1&model=nova/other&end=2026-11-20T12:00:05Z', [3, 0], 2],
      ])('of %j hold rows %j of %i', async (search, numbers, total) => {
        const page = await pageOf(db, 'pages', search)
        expect(page).toMatchObject({ ids: numbers.map((number) => `p${number}`), total })
      })

      test('of a customer without rows are empty', async () => {
        const [empty] = instances('empty')
        await addCustomer(empty, { id: 'empty' })
        for (const search of ['', 'model=x', 'start=2026-01-01T00:00:00Z', 'offset=5']) {
          expect(await pageOf(empty, 'empty', search)).toMatchObject({ ids: [], total: 0 })
        }
      })
    })

    test('a row comes back as it was settled, to the last nano', async () => {
      const [db] = instances('exact')
      const key = await addCustomer(db, { id: 'exact', billing: 'postpaid' })
      const base = settlementOf(key, 'exact-1', {
        modality: 'transcription',
        region: null,
        audioSeconds: 12.345,
        promptTokens: 2 ** 53 - 1,
        failover: true,
      })
      const cost = {
        nano: 9_007_199_254_740_993n,
        billingUnit: 'audio_minute',
        discountPct: 15,
        usdEur: '0.86',
      } as const
      await commitSettlement(db, { ...base, row: { ...base.row, cost } })
      const { rows } = await pageOf(db, 'exact', '')
      expect(rows.map(usageRowJson)).toEqual([
        '{"id":"exact-1","model":"nova/glm-5","modality":"transcription","provider":"nova",' +
          '"billing_unit":"audio_minute","audio_seconds":12.345,"prompt_tokens":9007199254740991,' +
          '"completion_tokens":5,"cost_eur":9007199.254740993,"discount_applied_pct":15,' +
          '"receipt_id":null,"failover":true,"key_prefix":"cmr_exact_k1","key_name":"name of k1",' +
          '"created_at":"2026-11-20T12:00:00.000Z"}',
      ])
      await deleteKey(db, key)
      const deleted = await pageOf(db, 'exact', '')
      expect(deleted.rows).toEqual([
        expect.objectContaining({ key_prefix: null, key_name: null, id: 'exact-1' }),
      ])
      expect(await pageOf(db, 'exact', `key_prefix=${key.keyPrefix}`)).toMatchObject({ total: 0 })
    })

    test('a sum that leaves the range is refused whole', async () => {
      const [db] = instances('range')
      const key = await addCustomer(db, { id: 'range', billing: 'postpaid' })
      const huge = (id: string) => settlementOf(key, id, { nano: 5_000_000_000_000_000_000n })
      await commitSettlement(db, huge('range-1'))
      await expect(commitSettlement(db, huge('range-2'))).rejects.toThrow(/constraint|refused/i)
      const ledger = { balance: -5_000_000_000_000_000_000n, rows: 1 }
      expect(await readLedgerTotals(db, 'range')).toMatchObject(ledger)
    })

    test('a sweep releases, overwrites, clears and drops what is due, and nothing else', async () => {
      const [left, right] = instances('swept')
      const key = await addCustomer(left, { id: 'swept', balance: 1000n })
      await admit(left, askOf(key, 'swept-open', { nano: 10n, expiresAt: NOW + 9000 }))
      await admit(left, askOf(key, 'swept-due', { nano: 20n, expiresAt: NOW + 1000 }))
      const evidenceRefs = ['e'.repeat(64)]
      const settle = async (id: string, expiresAtMs: number) =>
        commitSettlement(
          left,
          settlementOf(key, id, { receipt: receiptOf(`of ${id}`, { expiresAtMs, evidenceRefs }) }),
        )
      expect(await settle('swept-1', NOW + 1000)).toEqual({ missingEvidence: evidenceRefs })
      await storeEvidence(left, {
        customerId: 'swept',
        sha256: 'e'.repeat(64),
        dataB64: 'AAAA',
        expiresAtMs: NOW + 1000,
      })
      expect(await settle('swept-2', NOW + 5000)).toEqual({ missingEvidence: [] })
      await Promise.all([sweepAll(left, NOW + 1000), sweepAll(right, NOW + 1000)])
      expect(await readLedgerTotals(left, 'swept')).toEqual({
        balance: 1000n,
        reserved: 10n,
        rows: 2,
        open: 1,
      })
      const receipts = sql`SELECT receipt_id, body_state, jws, sha256 FROM receipts
        WHERE customer_id = 'swept' ORDER BY receipt_id`
      const kept = receiptOf('of swept-2').jws
      expect(await left.batch([receipts])).toEqual([
        [
          { receipt_id: 'of swept-1', body_state: 2, jws: null, sha256: 'sha256 of of swept-1' },
          { receipt_id: 'of swept-2', body_state: 0, jws: kept, sha256: 'sha256 of of swept-2' },
        ],
      ])
      const evidence = sql`SELECT sha256 FROM evidence WHERE customer_id = 'swept'`
      expect(await left.batch([evidence])).toEqual([[{ sha256: 'e'.repeat(64) }]])
      const laterThanTheHour = NOW + 5000 + 3_600_000
      await sweepAll(right, laterThanTheHour)
      expect(await left.batch([evidence])).toEqual([[]])
    })

    test('what was reserved before the clock was set back lapses after the time that it had', async () => {
      const [left, right] = instances('stepped')
      const key = await addCustomer(left, { id: 'stepped', balance: 100n })
      const earlier = NOW - 86_400_000
      const reserve = (id: string, now: number) =>
        admit(left, askOf(key, id, { nano: 10n, now, expiresAt: now + 5_000 }))
      await reserve('stepped-1', NOW)
      // By the clock of another router, which is a little ahead.
      await reserve('stepped-2', earlier + 30_000)
      const open = async (now: number) => {
        await sweepAll(right, now)
        return (await readLedgerTotals(left, 'stepped')).open
      }
      expect(await open(earlier)).toBe(2)
      expect(await open(earlier + 4_999)).toBe(2)
      expect(await open(earlier + 5_000)).toBe(1)
      expect(await open(earlier + 35_000)).toBe(0)
      expect(await readLedgerTotals(left, 'stepped')).toMatchObject({ balance: 100n, reserved: 0n })
    })
  })
}

/** A page by the query string of its request. */
async function pageOf(db: Database, id: string, search: string) {
  const query = readUsageQuery(new URLSearchParams(search))
  const { rows, total } = await readUsagePage(usageLedgerOf(db), id, query)
  return { ids: rows.map((row) => row['id']), total, rows }
}
