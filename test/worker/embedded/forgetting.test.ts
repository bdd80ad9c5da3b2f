import { expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import {
  changeCustomer,
  creditCustomer,
  insertCustomer,
} from '../../../src/worker/admin/customers.ts'
import { insertKey, markKeyDeleted, rotateKey, updateKey } from '../../../src/worker/admin/keys.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { batchedStorage } from '../../../src/worker/storage/batched-storage.ts'
import { changesAccounts } from '../../../src/worker/storage/concerns-ledger.ts'
import type { Database, Statement, Storage } from '../../../src/worker/storage/database.ts'
import { unpackBatches, type PackedBatches } from '../../../src/worker/storage/packed-batches.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import type { SyncStore } from '../../../src/worker/storage/sync-store.ts'
import {
  addCustomer,
  addKey,
  askOf,
  NOW,
  readLedgerTotals,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openEmbedded, type EmbeddedDatabase } from '../../support/sqlite-store.ts'

/** The storage that the program has of an embedded ledger: calls that carry packed batches, and operations. */
function storageOver({ ledgerEngine }: EmbeddedDatabase): Storage {
  const run = async (packed: PackedBatches) => {
    const answers = await ledgerEngine.batches(unpackBatches(packed))
    return answers.map(({ outcome }) => outcome)
  }
  return batchedStorage(
    { write: run, read: run, operate: (calls) => ledgerEngine.operations(calls) },
    { now: () => NOW, keepAlive: () => {} },
  )
}

/** Two customers whose accounts are in memory, and how often each one's was read since that was asked last. */
async function opened() {
  const reads: unknown[] = []
  const wrap = (store: SyncStore): SyncStore => ({
    ...store,
    run: (text, params) => {
      if (/^SELECT name, plan, billing.* FROM customers WHERE customer_id = \?$/s.test(text)) {
        reads.push(params[0])
      }
      return store.run(text, params)
    },
  })
  const db = await openEmbedded(':memory:', wrap)
  const storage = storageOver(db)
  const key = await addCustomer(db, { id: 'written', balance: 1_000n })
  const other = await addCustomer(db, { id: 'other', balance: 1_000n })
  await admit(storage.customer('written'), askOf(key, 'r1', { nano: 10n }))
  await admit(storage.customer('other'), askOf(other, 'r2', { nano: 10n }))
  const readsOf = (id: string) => reads.splice(0).filter((read) => read === id).length
  readsOf('')
  return { db, storage, key, other, readsOf }
}

const renewed = { key: 'cmr_written_k1_secret', prefix: 'cmr_written_k1' }

type Write = (db: Database, key: PresentedKey) => Promise<unknown>

const CHANGES: readonly (readonly [string, Write])[] = [
  ['a credit', (db) => creditCustomer(db, 'written', { amountNano: 5n, reference: 'c' }, NOW)],
  ['a change', (db) => changeCustomer(db, 'written', { name: 'new', suspended: false }, NOW)],
  [
    'a new key',
    (db) => insertKey(db, 'written', { key: 'k', prefix: 'cmr_written_k2', name: 'k2' }, NOW),
  ],
  [
    'a change of a key',
    (db, { keyPrefix }) => updateKey(db, 'written', keyPrefix, { requests_per_minute: 9 }, NOW),
  ],
  ['a rotation', (db) => rotateKey(db, 'written', { renewed, graceMs: 60_000 }, NOW)],
]

const ENDS: readonly (readonly [string, string, Write])[] = [
  [
    'a suspension',
    'customer_suspended',
    (db) => changeCustomer(db, 'written', { suspended: true }, NOW),
  ],
  [
    'the end of a key',
    'unauthorized',
    (db, { keyPrefix }) => markKeyDeleted(db, 'written', keyPrefix, NOW),
  ],
  ['an erasure', 'unauthorized', (db) => beginErasure(db, 'written', 'ledger', NOW)],
]

test.each(CHANGES)(
  'after %s the account of that customer alone is read again',
  async (_, write) => {
    const { db, storage, key, other, readsOf } = await opened()
    await write(storage.customer('written'), key)
    await admit(storage.customer('other'), askOf(other, 'r3', { nano: 20n }))
    expect(readsOf('other')).toBe(0)
    await admit(storage.customer('written'), askOf(key, 'r4', { nano: 20n }))
    expect(readsOf('written')).toBe(1)

    // Nothing of either account was lost or counted twice.
    const settle = (presented: PresentedKey, id: string) =>
      commitSettlement(
        storage.customer(presented.customerId),
        settlementOf(presented, id, { nano: 7n }),
      )
    await Promise.all([settle(key, 'r1'), settle(other, 'r2')])
    const totals = { reserved: 20n, rows: 1, open: 1 }
    expect(await readLedgerTotals(db, 'written')).toMatchObject(totals)
    expect(await readLedgerTotals(db, 'other')).toEqual({ ...totals, balance: 993n })
    db.connection.close()
  },
)

test.each(ENDS)(
  '%s is known at once, and no other account is read for it',
  async (_, code, write) => {
    const { db, storage, key, other, readsOf } = await opened()
    await write(storage.customer('written'), key)
    const refused = await rejectionOf(admit(storage.customer('written'), askOf(key, 'r3')))
    expect(refused.code).toBe(code)
    readsOf('')
    await admit(storage.customer('other'), askOf(other, 'r4'))
    expect(readsOf('other')).toBe(0)
    db.connection.close()
  },
)

test.each([...CHANGES, ...ENDS.map(([name, , write]) => [name, write] as const)])(
  '%s changes the account of its own customer alone',
  async (_, write) => {
    const { db, storage, key } = await opened()
    const customer = storage.customer('written')
    const changes: Statement[] = []
    const batch: Database['batch'] = (statements) => {
      changes.push(...statements.filter(changesAccounts))
      return customer.batch(statements)
    }
    await write({ batch }, key)
    expect(changes).not.toHaveLength(0)
    for (const { params } of changes) expect(params).toContain('written')
    db.connection.close()
  },
)

test('a new customer has no account read again, and can be admitted', async () => {
  const { db, storage, key, other, readsOf } = await opened()
  const terms = { name: '', plan: 'standard', billing: 'prepaid' } as const
  const customer = { ...terms, balanceNano: 30n, receiptRetentionDays: null }
  await insertCustomer(storage.customer('new'), 'new', customer, NOW)
  await admit(storage.customer('written'), askOf(key, 'r3'))
  await admit(storage.customer('other'), askOf(other, 'r4'))
  expect(readsOf('other')).toBe(0)
  const added = await addKey(storage.customer('new'), 'new', 'k1')
  await admit(storage.customer('new'), askOf(added, 'r5', { nano: 30n }))
  expect(await readLedgerTotals(db, 'new')).toMatchObject({ balance: 30n, reserved: 30n })
  db.connection.close()
})

test('every account is read again after a write that is no customer’s own', async () => {
  const { db, storage, other } = await opened()
  const [suspend, resume] = [1, null].map(
    (time) => sql`UPDATE customers SET suspended_at = ${time} WHERE customer_id > ''`,
  )
  if (suspend === undefined || resume === undefined) throw new Error('no statements')
  const admission = (id: string) => admit(storage.customer('other'), askOf(other, id))
  await storage.directory().batch([suspend])
  expect((await rejectionOf(admission('refused'))).code).toBe('customer_suspended')
  await storage.directory().batch([resume])
  await admission('admitted')
  const own = sql`UPDATE customers SET suspended_at = 1 WHERE customer_id = ${'other'}`
  await storage.directory().batch([own])
  expect((await rejectionOf(admission('last'))).code).toBe('customer_suspended')
  db.connection.close()
})

test('a write that shares its call with one for all customers has every account read again', async () => {
  const { db, storage, other } = await opened()
  await Promise.all([
    creditCustomer(storage.customer('written'), 'written', { amountNano: 5n, reference: 'c' }, NOW),
    storage.directory().batch([sql`UPDATE customers SET suspended_at = 1`]),
  ])
  const refused = await rejectionOf(admit(storage.customer('other'), askOf(other, 'r3')))
  expect(refused.code).toBe('customer_suspended')
  db.connection.close()
})
