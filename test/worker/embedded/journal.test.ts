import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, entryOf, ONE_RETRY } from '../../../src/worker/settle/ledger.ts'
import { sweep } from '../../../src/worker/settle/sweep.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import {
  addCustomer,
  askOf,
  NOW,
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

const SLOTS = 1_024
const SLOT_CHARACTERS = 4_056

/** Looked at from beside the ledger, which would fold before it answers. */
function count(db: EmbeddedDatabase, text: string): unknown {
  return db.connection.prepare(text).get()?.['n']
}

/** Slots that are not empty. */
const filled = (db: EmbeddedDatabase) =>
  count(db, `SELECT COUNT(*) AS n FROM journal WHERE entries >= '1'`)
/** Slots that are empty to the last character. */
const empty = (db: EmbeddedDatabase) =>
  count(
    db,
    `SELECT COUNT(*) AS n FROM journal WHERE LTRIM(entries, '0') = '' AND LENGTH(entries) = ${SLOT_CHARACTERS}`,
  )
const rows = (db: EmbeddedDatabase) => count(db, 'SELECT COUNT(*) AS n FROM usage')

test('a journal that is full is folded and begins anew, and a full one is read at the start', async () => {
  const path = join(directory, 'full.sqlite')
  const db = await openEmbedded(path)
  const key = await addCustomer(db, { billing: 'postpaid' })
  // Five slots each with what is around it, the last of which has room left.
  const jws = 'j'.repeat(5 * 4_032 - 1_000)
  const fits = Math.floor(SLOTS / 5)
  const settle = (index: number) => {
    const receipt = receiptOf(`receipt-${index}`, { jws })
    return commitSettlement(db, settlementOf(key, `request-${index}`, { nano: 1n, receipt }))
  }
  for (let index = 0; index < fits; index++) await settle(index)
  expect([filled(db), rows(db)]).toEqual([5 * fits, 0])
  await settle(fits)
  expect([filled(db), rows(db)]).toEqual([5 * fits, fits])
  for (let index = 1; index < fits; index++) await settle(fits + index)
  expect([filled(db), rows(db)]).toEqual([5 * fits, fits])
  db.connection.close()

  const again = await openEmbedded(path)
  expect([filled(again), rows(again)]).toEqual([5 * fits, fits])
  expect(await readLedgerTotals(again)).toMatchObject({
    balance: BigInt(-2 * fits),
    rows: 2 * fits,
  })
  await again.passTime()
  expect([filled(again), empty(again), rows(again)]).toEqual([0, SLOTS, 2 * fits])
  again.connection.close()
})

test('settlements of one moment share slots, and more than a journal holds are settled in parts', async () => {
  const path = join(directory, 'moment.sqlite')
  const db = await openEmbedded(path)
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settleTogether = async (jws: string, ids: readonly string[]) => {
    const entries = ids.map((id) => {
      const receipt = receiptOf(`receipt of ${id}`, { jws })
      return entryOf(settlementOf(key, id, { nano: 1n, receipt }))
    })
    const calls = entries.map((entry) => ({ kind: 'settle', entry }) as const)
    const outcomes = await db.ledgerEngine.operations(calls)
    expect(outcomes.every(({ ok }) => ok)).toBe(true)
  }
  await settleTogether('j', ['a', 'b', 'c', 'd'])
  expect([filled(db), rows(db)]).toEqual([1, 0])
  const many = Array.from({ length: 30 }, (_, index) => `r${index}`)
  await settleTogether('j'.repeat(200_000), many)
  db.connection.close()
  const again = await openEmbedded(path)
  expect(await readLedgerTotals(again)).toMatchObject({ balance: -34n, rows: 34 })
  const whole = `SELECT COUNT(*) AS n FROM receipts WHERE LENGTH(jws) = 200000`
  expect(count(again, whole)).toBe(30)
  again.connection.close()
})

test.each([
  ['is longer than 64 slots', { jws: 'j'.repeat(300_000) }, {}],
  ['has text that is not ASCII', {}, { region: 'Zürich' }],
])('a settlement that %s goes into the tables at once', async (_, receipt, row) => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settlement = settlementOf(key, 'r1', { nano: 5n, receipt: receiptOf('r', receipt), ...row })
  await commitSettlement(db, settlement)
  expect([filled(db), rows(db)]).toEqual([0, 1])
  await commitSettlement(db, settlement)
  expect(await readLedgerTotals(db)).toMatchObject({ balance: -5n, rows: 1 })
  db.connection.close()
})

describe('what a fold wrote is overwritten in the journal, to the last byte,', () => {
  const begin = async () => {
    const db = await openEmbedded()
    const key = await addCustomer(db, { billing: 'postpaid' })
    const settle = (id: string, length: number) => {
      const receipt = receiptOf(`receipt of ${id}`, { jws: 'j'.repeat(length) })
      return commitSettlement(db, settlementOf(key, id, { receipt }))
    }
    await settle('long', 12_000)
    expect(filled(db)).toBe(4)
    return { db, settle }
  }

  test('by the next fold, a second later', async () => {
    const { db } = await begin()
    await db.passTime()
    expect([filled(db), rows(db)]).toEqual([4, 1])
    await db.passTime()
    expect(empty(db)).toBe(SLOTS)
    db.connection.close()
  })

  test('by entries that follow, and where those are fewer by the next fold', async () => {
    const { db, settle } = await begin()
    await db.passTime()
    await settle('short', 10)
    await db.passTime()
    expect([filled(db), rows(db)]).toEqual([1, 2])
    const left = `SELECT COUNT(*) AS n FROM journal WHERE INSTR(entries, 'receipt of long') > 0`
    expect(count(db, left)).toBe(0)
    db.connection.close()
  })

  test('at once where other parts of the program write, as an erasure does', async () => {
    const { db } = await begin()
    await db.batch([sql`DELETE FROM receipts WHERE customer_id = 'nobody'`])
    expect([empty(db), rows(db)]).toEqual([SLOTS, 1])
    db.connection.close()
  })

  test('after a start', async () => {
    const path = join(directory, 'left.sqlite')
    const before = await openEmbedded(path)
    const key = await addCustomer(before, { billing: 'postpaid' })
    await commitSettlement(before, settlementOf(key, 'r1', { receipt: receiptOf('secret') }))
    await before.passTime()
    expect([filled(before), rows(before)]).toEqual([1, 1])
    before.connection.close()
    const db = await openEmbedded(path)
    expect([filled(db), rows(db)]).toEqual([1, 1])
    await db.passTime()
    expect([empty(db), rows(db)]).toEqual([SLOTS, 1])
    db.connection.close()
  })
})

describe('a damaged journal keeps the ledger shut:', () => {
  const slot = (number: number, chunk: string) => `${number} ${chunk.length}\n${chunk}`
  test.each([
    ['an entry that is none', [slot(1, '{}\n')], 'requestId'],
    ['a slot without a head', ['1{}'], 'damaged'],
    ['a slot that is cut off', [slot(1, '{}\n').slice(0, -1)], 'damaged'],
    ['a slot that is missing', [slot(1, '{'), slot(3, '}\n')], 'damaged'],
  ])('%s', async (name, slots, message) => {
    const path = join(directory, `${name}.sqlite`)
    const db = await openEmbedded(path)
    const damage = db.connection.prepare('UPDATE journal SET entries = ? WHERE slot = ?')
    for (const [index, text] of slots.entries()) damage.run(text, index)
    db.connection.close()
    await expect(openEmbedded(path)).rejects.toThrow(message)
  })

  test('a number of what is folded that is none, with which all entries would count as folded', async () => {
    const path = join(directory, 'folded.sqlite')
    const db = await openEmbedded(path)
    const key = await addCustomer(db, { billing: 'postpaid' })
    await commitSettlement(db, settlementOf(key, 'unfolded', { nano: 1n }))
    db.connection.exec(`UPDATE journal SET entries = 'x' || SUBSTR(entries, 2) WHERE slot = -1`)
    db.connection.close()
    await expect(openEmbedded(path)).rejects.toThrow('the journal of the ledger is damaged')
  })
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
  await expect(commitSettlement(db, settlement, ONE_RETRY)).rejects.toMatchObject(unavailable)
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

test('on a full disk, work that finds nothing to write does not pass for a disk that has space again', async () => {
  let full = false
  const db = await openEmbedded(':memory:', (store) => ({
    ...store,
    transact: (work) =>
      store.transact(() => {
        const changes = () => store.run('SELECT total_changes() AS n', []).rows[0]?.['n']
        const before = changes()
        const result = work()
        // A transaction that changes nothing needs no room.
        if (full && changes() !== before) throw new Error('database or disk is full: SQLITE_FULL')
        return result
      }),
  }))
  const key = await addCustomer(db, { balance: 100n })
  await admit(db, askOf(key, 'r1', { nano: 10n }))
  await db.passTime()
  full = true
  const refuses = (work: Promise<unknown>) =>
    expect(work).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.stringContaining('SQLITE_FULL'),
    })
  const another = sql`INSERT INTO secrets (name, value, created_at) VALUES ('another', '', 0)`
  await refuses(db.batch([another]))
  await refuses(admit(db, askOf(key, 'r2', { nano: 10n })))
  // Nothing of the ledger's own, and a round of maintenance.
  await db.batch([sql`DELETE FROM admin_sessions WHERE expires_at <= 0`])
  await refuses(admit(db, askOf(key, 'r3', { nano: 10n })))
  await sweep(db, NOW)
  await refuses(admit(db, askOf(key, 'r4', { nano: 10n })))
  full = false
  await admit(db, askOf(key, 'r5', { nano: 10n }))
  expect(await readLedgerTotals(db)).toMatchObject({ balance: 100n, reserved: 20n, open: 2 })
  db.connection.close()
})
