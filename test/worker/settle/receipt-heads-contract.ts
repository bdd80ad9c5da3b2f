import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { receiptOf as foundReceipt, receiptQuery } from '../../../src/worker/receipts/find.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { ReceiptHeads } from '../../../src/worker/settle/receipt-heads.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { storedJws } from '../../../src/worker/storage/stored-jws.ts'
import { addCustomer, NOW, receiptOf, settlementOf } from '../../support/ledger.ts'

const HOUR_MS = 3_600_000

/** What receipts in two parts must do alike on every engine; `instances` are two of the worker. */
export function describeReceiptHeads(instances: (id: string) => readonly [Database, Database]) {
  describe('a receipt whose head is stored apart', () => {
    const opened = async (id: string) => {
      const [left, right] = instances(id)
      const key = await addCustomer(left, { id, billing: 'postpaid' })
      const text = `eyJoZWFkIG9m-${id}.${'common_'.repeat(900)}`
      const head = { text, sha256: await sha256Hex(text) }
      const heads = [left, right].map((db) => new ReceiptHeads({ directory: () => db }, () => NOW))
      const sign = async (name: string, expiresAtMs: number, by = 0) => {
        const tail = `tail of ${name}.${'s'.repeat(86)}`
        const jws = storedJws(head.sha256, tail)
        const receipt = receiptOf(name, { jws, expiresAtMs })
        await heads[by]?.remember(head, expiresAtMs)
        await commitSettlement(left, settlementOf(key, `request of ${name}`, { receipt }))
        return text + tail
      }
      const read = async (name: string, now = NOW) => {
        const [rows] = await right.batch([receiptQuery(id, name, now)])
        return foundReceipt(rows?.[0]).jws
      }
      const stored = async () => {
        const found = sql`SELECT head FROM receipt_heads WHERE sha256 = ${head.sha256}`
        const [rows = []] = await right.batch([found])
        return rows.map((row) => row['head'])
      }
      return { left, right, sign, read, stored, text }
    }

    test('is read as it was signed, and the head is stored once for all that have it', async () => {
      const { right, sign, read, stored, text } = await opened('heads')
      const signed = await Promise.all(
        ['heads-1', 'heads-2', 'heads-3', 'heads-4'].map((name, index) =>
          sign(name, NOW + HOUR_MS, index % 2),
        ),
      )
      expect(await stored()).toEqual([text])
      for (const [index, jws] of signed.entries()) {
        expect(await read(`heads-${index + 1}`)).toBe(jws)
      }
      const lengths = sql`SELECT MAX(LENGTH(jws)) AS longest FROM receipts WHERE customer_id = 'heads'`
      const [rows] = await right.batch([lengths])
      expect(Number(rows?.[0]?.['longest'])).toBeLessThan(text.length / 10)
    })

    test('is beside one that is stored whole, as before there were heads', async () => {
      const { left, sign, read } = await opened('heads-old')
      const jws = `eyJ${'h'.repeat(200)}.${'b'.repeat(500)}.${'s'.repeat(86)}`
      const key = { customerId: 'heads-old', keyPrefix: 'cmr_heads-old_k1', keyHash: '' }
      const receipt = receiptOf('old-receipt', { jws })
      await commitSettlement(left, settlementOf(key, 'request of old', { receipt }))
      const latest = await sign('new-receipt', NOW + HOUR_MS)
      expect([await read('old-receipt'), await read('new-receipt')]).toEqual([jws, latest])
    })

    test('keeps its head until the last one that names it has expired, whichever came first', async () => {
      const { left, right, sign, read, stored, text } = await opened('heads-kept')
      await sign('kept-1', NOW + 5 * HOUR_MS)
      const last = await sign('kept-2', NOW + 9 * HOUR_MS, 1)
      await sign('kept-3', NOW + HOUR_MS)
      await Promise.all([sweepAll(left, NOW + 8 * HOUR_MS), sweepAll(right, NOW + 8 * HOUR_MS)])
      expect(await stored()).toEqual([text])
      expect(await read('kept-2', NOW + 8 * HOUR_MS)).toBe(last)
      await expect(read('kept-1', NOW + 8 * HOUR_MS)).rejects.toMatchObject({ code: 'expired' })
      await sweepAll(right, NOW + 10 * HOUR_MS)
      expect(await stored()).toEqual([])
      await expect(read('kept-2')).rejects.toMatchObject({ code: 'expired' })
    })
  })
}
