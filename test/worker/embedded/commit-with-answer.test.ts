import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, NO_RETRY } from '../../../src/worker/settle/ledger.ts'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import type { SyncStore } from '../../../src/worker/storage/sync-store.ts'
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
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-commit-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const KEY = { customerId: 'acme', keyPrefix: 'cmr_acme_k1', keyHash: 'hash of cmr_acme_k1' }

const settlementIn = (id: string) =>
  settlementOf(KEY, id, { nano: 7n, receipt: receiptOf(`receipt of ${id}`) })

/** A store that leaves open what is committed with an answer until it is told how the commit ends. */
function gated(refuse: () => boolean = () => false) {
  const gate = { isOpen: false }
  const wrap = (store: SyncStore): SyncStore => ({
    ...store,
    transactWithAnswer: (work) => {
      store.run('SAVEPOINT answer', [])
      gate.isOpen = true
      const result = work()
      if (!refuse()) return result
      store.run('ROLLBACK TO answer', [])
      store.run('RELEASE answer', [])
      gate.isOpen = false
      throw new Error('disk I/O error: SQLITE_IOERR')
    },
  })
  const end = (db: EmbeddedDatabase, sql: 'COMMIT' | 'ROLLBACK') => {
    if (gate.isOpen) db.connection.exec(sql)
    gate.isOpen = false
  }
  return { wrap, end }
}

/** A ledger of `acme` with what it needs to end a commit. */
async function open(name: string, refuse?: () => boolean) {
  const path = join(directory, `${name}.sqlite`)
  const { wrap, end } = gated(refuse)
  const db = await openEmbedded(path, wrap)
  await addCustomer(db, { balance: 100n })
  await admit(db, askOf(KEY, 'a', { nano: 30n }))
  return { path, db, end }
}

test('a ledger that follows one whose commit failed has billed nothing and holds the reservation, however young it was', async () => {
  const { path, db, end } = await open('refused')
  await commitSettlement(db, settlementIn('a'))
  end(db, 'ROLLBACK')
  const held = db.ledgerEngine.held()
  db.connection.close()

  const next = await openEmbedded(path, undefined, false, held)
  const unsettled = { balance: 100n, reserved: 30n, rows: 0, open: 1 }
  expect(await readLedgerTotals(next)).toEqual(unsettled)
  await commitSettlement(next, settlementIn('a'))
  await commitSettlement(next, settlementIn('a'))
  const settled = { balance: 93n, reserved: 0n, rows: 1, open: 0 }
  expect(await readLedgerTotals(next)).toEqual(settled)
  next.connection.close()
})

test('a ledger that follows one whose commit succeeded holds nothing for what was billed', async () => {
  const { path, db, end } = await open('committed')
  await admit(db, askOf(KEY, 'b', { nano: 20n }))
  await commitSettlement(db, settlementIn('a'))
  end(db, 'COMMIT')
  const held = db.ledgerEngine.held()
  const copy = join(directory, 'next.sqlite')
  for (const suffix of ['', '-wal']) copyFileSync(`${path}${suffix}`, `${copy}${suffix}`)
  db.connection.close()

  const next = await openEmbedded(copy, undefined, false, held)
  const books = { balance: 93n, reserved: 20n, rows: 1, open: 1 }
  expect(await readLedgerTotals(next)).toEqual(books)
  next.connection.close()
})

test('what the store refuses before the commit is taken back in memory, too', async () => {
  let isRefused = true
  const { db, end } = await open('undone', () => isRefused)
  const refused = commitSettlement(db, settlementIn('a'), NO_RETRY)
  await expect(refused).rejects.toThrow(new StorageUnavailable('disk I/O error: SQLITE_IOERR'))
  isRefused = false
  expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 30n, rows: 0, open: 1 })
  await commitSettlement(db, settlementIn('a'))
  end(db, 'COMMIT')
  expect(await readLedgerTotals(db)).toEqual({ balance: 93n, reserved: 0n, rows: 1, open: 0 })
  db.connection.close()
})
