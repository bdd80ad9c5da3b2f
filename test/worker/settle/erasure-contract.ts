import { describe, expect, test } from 'vitest'
import { ledgerPosition } from '../../../src/worker/admin/ledger.ts'
import { findCustomer } from '../../../src/worker/admin/customers.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement, storeEvidence } from '../../../src/worker/settle/ledger.ts'
import { quarantine, settleQuarantined } from '../../../src/worker/settle/quarantine.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database, Row } from '../../../src/worker/storage/database.ts'
import { listCustomer } from '../../../src/worker/storage/directory.ts'
import { MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import { int64, raw, sql } from '../../../src/worker/storage/sql.ts'
import { usageCsv } from '../../../src/worker/usage/export.ts'
import { usageLedgerOf } from '../../../src/worker/usage/ledger.ts'
import { readRowsBefore, readUsagePage } from '../../../src/worker/usage/page.ts'
import { readUsageQuery } from '../../../src/worker/usage/query.ts'
import { summarize } from '../../../src/worker/usage/summary.ts'
import { queueNew } from '../../../src/worker/webhooks/outbox.ts'
import { WEBHOOK_EVENTS } from '../../../src/protocol/webhook-config.ts'
import { listKeysOf, rotateKey } from '../../../src/worker/admin/keys.ts'
import {
  addCustomer,
  askOf,
  deleteKey,
  NOW,
  readLedgerTotals,
  receiptOf,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'

type Instances = (id: string) => readonly [Database, Database]

/** Every table that the migrations make. */
const TABLES = MIGRATIONS.flatMap(({ statements }) =>
  statements.flatMap((statement) => /^CREATE TABLE IF NOT EXISTS (\w+)/.exec(statement)?.[1] ?? []),
)

/** Those that hold something of a customer. A table that is added is erased too, or it must say why not. */
const OF_CUSTOMERS = [
  'customers',
  'api_keys',
  'credits',
  'reservations',
  'usage',
  'receipts',
  'evidence',
  'directory_customers',
  'quarantined_settlements',
  'idempotent_requests',
  'webhook_events',
  'webhook_deliveries',
  'rotated_keys',
  'usage_blocks',
]

const everything = readUsageQuery(new URLSearchParams())

/** Blocks that few rows fill. */
const SMALL_BLOCKS = { sizes: [4, 2], rowsAtOnce: 2, blocksAtOnce: 2, totalsAtOnce: 2 }

const reader = (db: Database) => async (statement: ReturnType<typeof sql>) => {
  const [rows = []] = await db.batch([statement])
  return rows
}

/** Size and first row of the blocks that so many rows fill. */
function blocksOf(size: number, rows: number): readonly (readonly [number, number])[] {
  return Array.from({ length: Math.floor(rows / size) }, (_, index) => [size, index * size + 1])
}

/** What erasure, and sums and exports of the ledger, must do alike on every engine. */
export function describeErasure(instances: Instances) {
  describe('an erased customer', () => {
    test('goes on where the clock was set back since it began', async () => {
      const [left, right] = instances('stepped-gone')
      await addCustomer(left, { id: 'stepped-gone', balance: 100n })
      await beginErasure(left, 'stepped-gone', 'ledger-of-stepped-gone', NOW)
      await sweepAll(right, NOW - 86_400_000)
      expect(await findCustomer(left, 'ledger-of-stepped-gone')).toMatchObject({ name: '' })
    })

    test('leaves its ledger under another id and nothing else, once its requests have ended', async () => {
      const [left, right] = instances('gone')
      const key = await addCustomer(left, { id: 'gone', balance: 100n })
      for (const id of ['gone-1', 'gone-2']) {
        await admit(left, askOf(key, id, { nano: 20n }))
      }
      await commitSettlement(
        left,
        settlementOf(key, 'gone-1', { nano: 10n, receipt: receiptOf('gone-receipt-1') }),
      )
      const position = await ledgerPosition(left)
      expect(await beginErasure(left, 'gone', 'ledger-of-gone', NOW)).toBe('ledger-of-gone')
      expect(await beginErasure(right, 'gone', 'another', NOW)).toBe('ledger-of-gone')
      expect(await findCustomer(right, 'gone')).toBe(undefined)
      expect(await listKeysOf(right, 'gone', NOW)).toBe(undefined)
      expect((await rejectionOf(admit(right, askOf(key, 'gone-3')))).code).toBe('unauthorized')
      await sweepAll(left, NOW)
      // One request is still in progress. Receipts do not wait for it.
      expect(
        await reader(right)(
          sql`SELECT customer_id, jws FROM receipts WHERE customer_id LIKE '%gone'`,
        ),
      ).toEqual([{ customer_id: 'ledger-of-gone', jws: null }])
      // It is settled, and its receipt goes like the others.
      await commitSettlement(
        right,
        settlementOf(key, 'gone-2', { nano: 15n, receipt: receiptOf('gone-receipt-2') }),
      )
      await sweepAll(left, NOW + 60_000)
      expect(await findCustomer(left, 'gone')).toBe(undefined)
      expect(await findCustomer(right, 'ledger-of-gone')).toMatchObject({
        name: '',
        erased_at: new Date(NOW).toISOString(),
        balance_eur: '0.000000075',
      })
      const ledger = { balance: 75n, reserved: 0n, rows: 2, open: 0 }
      expect(await readLedgerTotals(right, 'ledger-of-gone')).toEqual(ledger)
      const rows = await reader(left)(
        sql`SELECT key_prefix, receipt_id FROM usage WHERE customer_id = 'ledger-of-gone'`,
      )
      expect(rows).toEqual([
        { key_prefix: '', receipt_id: null },
        { key_prefix: '', receipt_id: null },
      ])
      const emptied = await reader(right)(
        sql`SELECT receipt_id, jws, body_state, sha256, kid, model, expires_at FROM receipts
          WHERE customer_id = 'ledger-of-gone' ORDER BY receipt_id`,
      )
      const empty = { jws: null, body_state: 2, sha256: '', kid: '', model: '', expires_at: 0 }
      expect(emptied).toEqual([
        { receipt_id: 'row-1', ...empty },
        { receipt_id: 'row-2', ...empty },
      ])
      const left0 = await left.batch(
        ['customers', 'api_keys', 'receipts', 'usage', 'credits', 'erasures', 'evidence'].map(
          (table) => ({ sql: `SELECT * FROM ${table} WHERE customer_id = 'gone'`, params: [] }),
        ),
      )
      expect(left0.flat()).toEqual([])
      // Of the first and the second request a row each has been added since.
      expect(await ledgerPosition(left)).toBe(position + 1)
      expect(await beginErasure(left, 'gone', 'third', NOW)).toBe(undefined)
      // Evidence is fetched and stored after the receipt that names it, so it may come late.
      const late = { sha256: 'e'.repeat(64), dataB64: 'ZQ==', expiresAtMs: NOW + 1 }
      await storeEvidence(right, { customerId: 'gone', ...late })
      expect(
        await reader(left)(sql`SELECT sha256 FROM evidence WHERE customer_id = 'gone'`),
      ).toEqual([])
      expect(await beginErasure(left, 'ledger-of-gone', 'fourth', NOW)).toBe(undefined)
    })
  })

  test('each receipt of an erased customer is emptied, of more ledger rows than a round takes, not all of which have one', async () => {
    const [left, right] = instances('many')
    const key = await addCustomer(left, { id: 'many', billing: 'postpaid' })
    // The first of them have expired, and more than a round in a row have no receipt.
    const receiptNo = (number: number) =>
      number % 3 === 0 || (number > 40 && number < 280)
        ? undefined
        : receiptOf(`many-${number}`, { expiresAtMs: NOW + (number < 10 ? 1 : 1_000_000) })
    const numbers = Array.from({ length: 320 }, (_, index) => index + 1)
    // One after another, so that the ledger has them in this order.
    for (const number of numbers) {
      const receipt = receiptNo(number)
      const more = receipt === undefined ? {} : { receipt }
      await commitSettlement(left, settlementOf(key, `many-request-${number}`, more))
    }
    await sweepAll(left, NOW + 1)
    await beginErasure(right, 'many', 'ledger-of-many', NOW + 1)
    // Two instances sweep at once.
    await Promise.all([left, right].map((db) => sweepAll(db, NOW + 1)))
    const receipts = await reader(left)(
      sql`SELECT customer_id, receipt_id, jws, sha256 FROM receipts
        WHERE customer_id LIKE '%many' OR receipt_id LIKE 'many-%'`,
    )
    const named = numbers.filter((number) => receiptNo(number) !== undefined)
    expect(new Set(receipts.map((row) => row['receipt_id'])).size).toBe(named.length)
    for (const row of receipts) {
      expect(row).toEqual({
        customer_id: 'ledger-of-many',
        receipt_id: expect.stringMatching(/^row-\d+$/),
        jws: null,
        sha256: '',
      })
    }
    expect(await readLedgerTotals(left, 'ledger-of-many')).toMatchObject({ rows: 320, open: 0 })
    expect(
      await reader(left)(sql`SELECT id FROM usage WHERE customer_id = 'many'
        OR (customer_id = 'ledger-of-many' AND receipt_id IS NOT NULL)`),
    ).toEqual([])
  })

  test('nothing in any table identifies an erased customer, whatever data it had', async () => {
    const [left, right] = instances('XGONEX')
    const key = await addCustomer(left, { id: 'XGONEX', balance: 100n })
    const everyTable = async (): Promise<readonly (readonly [string, string])[]> => {
      const rows = await right.batch(TABLES.map((table) => sql`SELECT * FROM ${raw(table)}`))
      return TABLES.map((table, index) => [table, JSON.stringify(rows[index])])
    }
    const telling = (tables: readonly (readonly [string, string])[]) =>
      tables.filter(([, rows]) => /X[A-Z]+X/.test(rows)).map(([table]) => table)
    const settle = (id: string, more: object = {}) =>
      commitSettlement(left, {
        ...settlementOf(key, id, { nano: 30n, ...more }),
        alerts: { balanceBelowNano: 80n },
      })
    const claim = { name: 'XCLAIMX', fingerprint: 'f', lifetimeMs: 1_800_000, customerBytes: 1_000 }
    const evidenceRefs = ['e'.repeat(64)]
    const receipt = receiptOf('XRECEIPTX', { evidenceRefs })
    await admit(left, askOf(key, 'XREQUESTX-1', { nano: 40n, claim }))
    await admit(left, askOf(key, 'XREQUESTX-2', { nano: 10n }))
    await settle('XREQUESTX-1', { receipt, claim, answer: 'XANSWERX' })
    const proof = { sha256: 'e'.repeat(64), dataB64: 'XPROOFX', expiresAtMs: NOW + 1 }
    await storeEvidence(left, { customerId: 'XGONEX', ...proof })
    const renewed = { key: 'XSECRETX', prefix: key.keyPrefix }
    await rotateKey(left, 'XGONEX', { renewed, graceMs: 60_000 }, NOW)
    await listCustomer(left, 'XGONEX', NOW)
    await queueNew(left, [{ name: 'ops', events: WEBHOOK_EVENTS }], NOW)
    await quarantine(left, settlementOf(key, 'XREQUESTX-3', { nano: 5n }), NOW)
    await left.batch([
      sql`INSERT INTO usage_blocks (customer_id, row_count, first_seq, total_count, totals)
        VALUES ('XGONEX', ${int64(1000)}, ${int64(1)}, ${int64(0)}, '[]')`,
    ])
    expect(telling(await everyTable())).toEqual(OF_CUSTOMERS)

    await beginErasure(left, 'XGONEX', 'ledger-of-nobody', NOW)
    await settle('XREQUESTX-2')
    await sweepAll(right, NOW)
    const after = await everyTable()
    expect(telling(after)).toEqual(['usage', 'quarantined_settlements'])
    // The ids of requests stay: they are those of rows of the ledger.
    const left0 = after.map(([table, rows]) => [table, rows.replaceAll('XREQUESTX', '')] as const)
    expect(telling(left0)).toEqual([])

    const storage = { directory: left, customer: () => left }
    expect(await settleQuarantined(storage, 'XREQUESTX-3', NOW)).toBe(true)
    const ledger = { balance: 35n, reserved: 0n, rows: 3, open: 0 }
    expect(await readLedgerTotals(right, 'ledger-of-nobody')).toEqual(ledger)
    const keys = sql`SELECT DISTINCT key_prefix FROM usage WHERE customer_id = 'ledger-of-nobody'`
    expect(await reader(left)(keys)).toEqual([{ key_prefix: '' }])
  })

  describe('the ledger', () => {
    test('is added up by day, model, key and provider, deleted keys without their names', async () => {
      const [left, right] = instances('sums')
      const key = await addCustomer(left, { id: 'sums', billing: 'postpaid' })
      const day = 86_400_000
      const midnight = Math.floor(NOW / day) * day
      for (const [index, at] of [midnight - 1, midnight, midnight + 1].entries()) {
        await commitSettlement(
          left,
          settlementOf(key, `sums-${index}`, {
            nano: 5n + 2n ** 50n,
            createdAtMs: at,
            model: index === 2 ? 'nova/other' : 'nova/glm-5',
          }),
        )
      }
      const by = (groupings: Parameters<typeof summarize>[3], query = everything) =>
        summarize(usageLedgerOf(right), 'sums', query, groupings)
      const days = await by(['day'])
      expect(days.groups.map(({ members, sums }) => [members['day'], sums.requests])).toEqual([
        ['2026-11-20', 2],
        ['2026-11-19', 1],
      ])
      expect(days.total).toMatchObject({
        requests: 3,
        promptTokens: 30n,
        completionTokens: 15n,
        costNano: 3n * (5n + 2n ** 50n),
      })
      const all = await by(['day', 'model', 'key', 'provider'])
      expect(all.groups[0]?.members).toEqual({
        day: '2026-11-20',
        model: 'nova/glm-5',
        provider: 'nova',
        key_prefix: 'cmr_sums_k1',
        key_name: 'name of k1',
      })
      const since = { ...everything, start: midnight, model: 'nova/glm-5' }
      expect((await by(['model'], since)).total.requests).toBe(1)
      await deleteKey(left, key)
      expect((await by(['key'])).groups).toMatchObject([
        { members: { key_prefix: null, key_name: null }, sums: { requests: 3 } },
      ])
      expect(await by(['day'], { ...everything, end: 0 })).toMatchObject({ groups: [] })
    })

    test('keeps the totals of blocks for later queries, which see every row that was settled since', async () => {
      const [left, right] = instances('blocks')
      const key = await addCustomer(left, { id: 'blocks', billing: 'postpaid' })
      const settle = async (numbers: readonly number[]) => {
        for (const number of numbers) {
          const model = number % 3 === 0 ? 'nova/other' : 'nova/glm-5'
          const row = { nano: 2n ** 50n + 1n, model, audioSeconds: 0.5 }
          await commitSettlement(left, settlementOf(key, `blocks-${number}`, row))
        }
      }
      const answers = async (db: Database) => {
        const ledger = usageLedgerOf(db)
        const other = { ...everything, model: 'nova/other', limit: 2, offset: 1 }
        const page = await readUsagePage(ledger, 'blocks', other, SMALL_BLOCKS)
        const byKey = await summarize(ledger, 'blocks', everything, ['model', 'key'], SMALL_BLOCKS)
        const exported = await readRowsBefore(
          ledger,
          'blocks',
          { ...everything, keyPrefix: key.keyPrefix },
          { seq: 8, count: 5 },
          SMALL_BLOCKS,
        )
        const ids = (rows: readonly Row[]) => rows.map(({ id }) => id)
        const sums = byKey.groups.map((group) => [group.members['model'], group.sums])
        return { page: [ids(page.rows), page.total], sums, exported: ids(exported) }
      }
      const sumOf = (requests: number) => ({
        requests,
        promptTokens: BigInt(requests * 10),
        completionTokens: BigInt(requests * 5),
        audioSeconds: requests / 2,
        costNano: BigInt(requests) * (2n ** 50n + 1n),
      })
      const exported = [7, 6, 5, 4, 3].map((number) => `blocks-${number}`)
      await settle([1, 2, 3, 4, 5, 6, 7, 8, 9])
      const nine = {
        page: [['blocks-6', 'blocks-3'], 3],
        sums: [
          ['nova/glm-5', sumOf(6)],
          ['nova/other', sumOf(3)],
        ],
        exported,
      }
      expect(await Promise.all([answers(left), answers(right)])).toEqual([nine, nine])
      const kept = sql`SELECT row_count, first_seq FROM usage_blocks WHERE customer_id = 'blocks'
        ORDER BY row_count, first_seq`
      const blocks = (await reader(right)(kept)).map((row) => Object.values(row).map(Number))
      expect(blocks).toEqual([2, 4].flatMap((rows) => blocksOf(rows, 9)))
      await settle([10, 11, 12, 13])
      const all = {
        page: [['blocks-9', 'blocks-6'], 4],
        sums: [
          ['nova/glm-5', sumOf(9)],
          ['nova/other', sumOf(4)],
        ],
        exported,
      }
      expect(await answers(right)).toEqual(all)
      expect(await answers(left)).toEqual(all)
    })

    test('is exported page by page, newest first, whatever is added meanwhile', async () => {
      const [left, right] = instances('export')
      const key = await addCustomer(left, { id: 'export', billing: 'postpaid' })
      const settle = (id: string) => commitSettlement(left, settlementOf(key, id, { nano: 1n }))
      for (const id of ['export-0', 'export-1', 'export-2']) {
        await settle(id)
      }
      await left.batch([
        sql`UPDATE api_keys SET name = '=HYPERLINK("x")', created_at = ${int64(NOW)}
          WHERE customer_id = 'export'`,
      ])
      const readBefore = async (seq: number | undefined, count: number) => {
        const rows = await readRowsBefore(usageLedgerOf(right), 'export', everything, {
          seq,
          count,
        })
        await settle(`export-later-${seq}`)
        return rows
      }
      const parts = usageCsv(readBefore, 500, 1)
      let text = ''
      for await (const part of parts) text += part
      const [head, ...records] = text.split('\r\n')
      expect(head).toBe(
        'id,model,modality,provider,region,billing_unit,audio_seconds,prompt_tokens,completion_tokens,cost_eur,discount_applied_pct,receipt_id,failover,usage_capped,key_prefix,key_name,created_at',
      )
      expect(records).toEqual([
        ...['export-2', 'export-1', 'export-0'].map(
          (id) =>
            `${id},nova/glm-5,chat,nova,eu,token,,10,5,0.000000001,0,,false,false,cmr_export_k1,"'=HYPERLINK(""x"")",2026-11-20T12:00:00.000Z`,
        ),
        '',
      ])
    })
  })
}
