import { expect, test } from 'vitest'
import { EmbeddedLedger } from '../../../src/worker/embedded/embedded-ledger.ts'
import { commitSettlement, entryOf, NO_RETRY } from '../../../src/worker/settle/ledger.ts'
import { addCustomer, settlementOf } from '../../support/ledger.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'

const MANY = 256

/** An embedded ledger whose transactions can be made to fail. */
async function begin() {
  const disk = { isFull: false, tries: 0 }
  const db = await openEmbedded(':memory:', (store) => ({
    ...store,
    transact: async (work) => {
      disk.tries += 1
      if (disk.isFull) throw new Error('database or disk is full: SQLITE_FULL')
      return store.transact(work)
    },
  }))
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settle = async (from: number, to: number) => {
    for (let id = from; id < to; id++) {
      await commitSettlement(db, settlementOf(key, `r${id}`, { nano: 1n }), NO_RETRY)
    }
  }
  const rows = () => db.connection.prepare('SELECT COUNT(*) AS n FROM usage').get()?.['n']
  return { db, disk, settle, rows }
}

test('many settlements are folded right after the last of them is answered, fewer within a second', async () => {
  const { db, settle, rows } = await begin()
  await settle(0, MANY - 1)
  await db.passTime(0)
  expect(rows()).toBe(0)
  await settle(MANY - 1, MANY)
  expect(rows()).toBe(0)
  await db.passTime(0)
  expect(rows()).toBe(MANY)
  await settle(MANY, MANY + 1)
  await db.passTime(0)
  expect(rows()).toBe(MANY)
  await settle(MANY + 1, 2 * MANY)
  await db.passTime(0)
  expect(rows()).toBe(2 * MANY)
  db.connection.close()
})

test('the owner of an engine says how many settlements are many', async () => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { billing: 'postpaid' })
  const waits: number[] = []
  const ledger = new EmbeddedLedger(db.store, { later: (ms) => void waits.push(ms), foldAt: 3 })
  await ledger.open()
  const settle = (id: string) =>
    ledger.operations([{ kind: 'settle', entry: entryOf(settlementOf(key, id, { nano: 1n })) }])
  await settle('r1')
  await settle('r2')
  expect(waits).toEqual([1_000])
  await settle('r3')
  expect(waits).toEqual([1_000, 0])
  db.connection.close()
})

test('after an early fold, what comes waits a second of its own', async () => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { billing: 'postpaid' })
  const due: { readonly ms: number; readonly work: () => Promise<void> }[] = []
  const ledger = new EmbeddedLedger(db.store, {
    later: (ms, work) => void due.push({ ms, work }),
    foldAt: 2,
  })
  await ledger.open()
  const settle = (id: string) =>
    ledger.operations([{ kind: 'settle', entry: entryOf(settlementOf(key, id, { nano: 1n })) }])
  const pass = async (index: number) => due[index]?.work()
  const rows = () => db.connection.prepare('SELECT COUNT(*) AS n FROM usage').get()?.['n']
  await settle('r1')
  await settle('r2')
  await pass(1)
  await settle('r3')
  expect(due.map(({ ms }) => ms)).toEqual([1_000, 0, 1_000])
  await pass(0)
  expect([rows(), ledger.isBehind]).toEqual([2, true])
  await pass(2)
  expect([rows(), ledger.isBehind]).toEqual([3, false])
  db.connection.close()
})

test('an early fold that fails is not tried again before the second has passed', async () => {
  const { db, disk, settle, rows } = await begin()
  await settle(0, MANY)
  disk.isFull = true
  disk.tries = 0
  await db.passTime(0)
  await db.passTime(0)
  expect([disk.tries, rows()]).toEqual([1, 0])
  disk.isFull = false
  await db.passTime()
  expect(rows()).toBe(MANY)
  await settle(MANY, 2 * MANY)
  await db.passTime(0)
  expect(rows()).toBe(2 * MANY)
  db.connection.close()
})
