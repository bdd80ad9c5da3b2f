import { expect, test } from 'vitest'
import { sql } from '../../../src/worker/storage/sql.ts'
import { commitSettlement, NO_RETRY } from '../../../src/worker/settle/ledger.ts'
import { addCustomer, settlementOf } from '../../support/ledger.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'

const FULL = 'database or disk is full: SQLITE_FULL'

/** An embedded ledger with a settlement that waits for the tables, whose transactions can be made to fail. */
async function begin() {
  const disk = { isFull: false, tries: 0 }
  const db = await openEmbedded(':memory:', (store) => ({
    ...store,
    transact: async (work) => {
      disk.tries += 1
      if (disk.isFull) throw new Error(FULL)
      return store.transact(work)
    },
  }))
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settle = (id: string) => commitSettlement(db, settlementOf(key, id, { nano: 1n }), NO_RETRY)
  await settle('r1')
  disk.tries = 0
  const count = async () => {
    const [rows] = await db.batch([sql`SELECT COUNT(*) AS n FROM usage`])
    return rows?.[0]?.['n']
  }
  const outcome = () => count().catch((error: unknown) => String(error))
  return { db, disk, settle, outcome }
}

test('all who wait to read share one fold, and its error where the disk is full', async () => {
  const { db, disk, outcome } = await begin()
  disk.isFull = true
  const outcomes = await Promise.all(Array.from({ length: 20 }, outcome))
  for (const one of outcomes) expect(one).toContain(FULL)
  expect(disk.tries).toBe(1)
  db.connection.close()
})

test('a fold that failed is not tried again for readers before a quarter of a second has passed', async () => {
  const { db, disk, outcome } = await begin()
  disk.isFull = true
  for (let reads = 0; reads < 5; reads++) expect(await outcome()).toContain(FULL)
  expect(disk.tries).toBe(1)
  await db.passTime(250)
  expect(await outcome()).toContain(FULL)
  expect(disk.tries).toBe(2)
  disk.isFull = false
  await db.passTime(250)
  expect(await outcome()).toBe(1)
  db.connection.close()
})

test('readers find everything as soon as another fold has succeeded', async () => {
  const { db, disk, outcome } = await begin()
  disk.isFull = true
  expect(await outcome()).toContain(FULL)
  disk.isFull = false
  await db.batch([sql`UPDATE customers SET name = 'another'`])
  expect(await outcome()).toBe(1)
  db.connection.close()
})

test('who comes while a fold is under way waits for the next one', async () => {
  const { db, settle, outcome } = await begin()
  const first = outcome()
  const settled = settle('r2')
  await settled
  const second = outcome()
  expect(await Promise.all([first, second])).toEqual([1, 2])
  db.connection.close()
})
