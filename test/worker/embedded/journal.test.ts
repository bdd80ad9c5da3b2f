import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import {
  addCustomer,
  askOf,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openEmbedded, type EmbeddedDatabase } from '../../support/sqlite-store.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-journal-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const SLOTS = 128

/** Looked at from beside the ledger, which would fold before it answers. */
function count(db: EmbeddedDatabase, text: string): unknown {
  return db.connection.prepare(text).get()?.['n']
}

const used = (db: EmbeddedDatabase) =>
  count(db, `SELECT COUNT(*) AS n FROM journal WHERE entries >= '1'`)
const rows = (db: EmbeddedDatabase) => count(db, 'SELECT COUNT(*) AS n FROM usage')

test('a journal that is full is folded and begins anew, and a full one is read at the start', async () => {
  const path = join(directory, 'full.sqlite')
  const db = await openEmbedded(path)
  const key = await addCustomer(db, { billing: 'postpaid' })
  const jws = 'j'.repeat(20_000)
  const settle = (index: number) => {
    const receipt = receiptOf(`receipt-${index}`, { jws })
    return commitSettlement(db, settlementOf(key, `request-${index}`, { nano: 1n, receipt }))
  }
  for (let index = 0; index < SLOTS; index++) await settle(index)
  expect([used(db), rows(db)]).toEqual([SLOTS, 0])
  await settle(SLOTS)
  expect([used(db), rows(db)]).toEqual([1, SLOTS])
  for (let index = 1; index < SLOTS; index++) await settle(SLOTS + index)
  expect([used(db), rows(db)]).toEqual([SLOTS, SLOTS])
  db.connection.close()

  const again = await openEmbedded(path)
  expect([used(again), rows(again)]).toEqual([SLOTS, SLOTS])
  expect(await readLedgerTotals(again)).toMatchObject({ balance: -256n, rows: 2 * SLOTS })
  expect([used(again), rows(again)]).toEqual([0, 2 * SLOTS])
  again.connection.close()
})

test.each([
  ['is longer than a slot', { jws: 'j'.repeat(40_000) }, {}],
  ['has text that is not ASCII', {}, { region: 'Zürich' }],
])('a settlement that %s goes into the tables at once', async (_, receipt, row) => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settlement = settlementOf(key, 'r1', { nano: 5n, receipt: receiptOf('r', receipt), ...row })
  await commitSettlement(db, settlement)
  expect([used(db), rows(db)]).toEqual([0, 1])
  await commitSettlement(db, settlement)
  expect(await readLedgerTotals(db)).toMatchObject({ balance: -5n, rows: 1 })
  db.connection.close()
})

test('what a fold wrote is overwritten in the journal, to the last byte', async () => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { billing: 'postpaid' })
  await commitSettlement(db, settlementOf(key, 'r1', { receipt: receiptOf('secret') }))
  expect(used(db)).toBe(1)
  await db.passTime()
  const filled = `SELECT COUNT(*) AS n FROM journal WHERE LTRIM(entries, '0') = '' AND LENGTH(entries) = 32768`
  expect(count(db, filled)).toBe(SLOTS)
  db.connection.close()
})

test('a damaged journal keeps the ledger shut', async () => {
  const path = join(directory, 'damaged.sqlite')
  const db = await openEmbedded(path)
  db.connection.exec(
    `UPDATE journal SET entries = '1' || char(10) || '{}' || char(10) WHERE slot = 0`,
  )
  db.connection.close()
  await expect(openEmbedded(path)).rejects.toThrow('requestId')
})

test('while the disk is full nothing is admitted, and afterwards everything goes on', async () => {
  let full = false
  const db = await openEmbedded(':memory:', (store) => ({
    ...store,
    transact: (work) => {
      if (full) return Promise.reject(new Error('database or disk is full: SQLITE_FULL'))
      return store.transact(work)
    },
  }))
  const key = await addCustomer(db, { balance: 100n })
  await admit(db, askOf(key, 'r1', { nano: 60n }))
  full = true
  const settlement = settlementOf(key, 'r1', { nano: 30n, receipt: receiptOf('of r1') })
  const unavailable = {
    name: 'StorageUnavailable',
    message: expect.stringContaining('SQLITE_FULL'),
  }
  await expect(commitSettlement(db, settlement)).rejects.toMatchObject(unavailable)
  await expect(admit(db, askOf(key, 'r2', { nano: 10n }))).rejects.toMatchObject(unavailable)
  await expect(readLedgerTotals(db)).rejects.toMatchObject(unavailable)
  full = false
  await expect(admit(db, askOf(key, 'r3', { nano: 41n }))).rejects.toThrow('balance')
  await commitSettlement(db, settlement)
  await admit(db, askOf(key, 'r4', { nano: 70n }))
  const books = { balance: 70n, reserved: 70n, rows: 1, open: 1 }
  expect(await readLedgerTotals(db)).toEqual(books)
  db.connection.close()
})
