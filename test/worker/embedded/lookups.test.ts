import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { creditCustomer } from '../../../src/worker/admin/customers.ts'
import { Accounts } from '../../../src/worker/embedded/accounts.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  ONE_RETRY,
  releaseReservation,
  storeEvidence,
} from '../../../src/worker/settle/ledger.ts'
import type { LedgerCall } from '../../../src/worker/storage/ledger-calls.ts'
import type { SyncStore } from '../../../src/worker/storage/sync-store.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-lookups-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Notes what reaches the store. */
function watched() {
  const statements: string[] = []
  const wrap = (store: SyncStore): SyncStore => ({
    ...store,
    run: (text, params) => {
      statements.push(`${text} ${JSON.stringify(params)}`)
      return store.run(text, params)
    },
  })
  const take = (pattern: RegExp) =>
    statements.splice(0).filter((statement) => pattern.test(statement))
  return { wrap, take }
}

const HOUR_MS = 3_600_000

const CLAIM = {
  name: 'c'.repeat(64),
  fingerprint: 'f'.repeat(64),
  lifetimeMs: 60_000,
  customerBytes: 1_000_000,
}

test('the tables are not asked about a request that was admitted here and is younger than all that was forgotten', async () => {
  const { wrap, take } = watched()
  const db = await openEmbedded(':memory:', wrap)
  const key = await addCustomer(db, { balance: 1_000n })
  const lookups = () => take(/FROM (usage|receipts) WHERE/).length
  const settle = (id: string) =>
    commitSettlement(db, settlementOf(key, id, { nano: 7n, receipt: receiptOf(`of ${id}`) }))
  await settle('first')
  expect(lookups()).toBeGreaterThan(0)
  await admit(db, askOf(key, 'r1', { nano: 10n }))
  take(/./)
  await settle('r1')
  expect(lookups()).toBe(0)
  await settle('r1')
  expect(lookups()).toBeGreaterThan(0)
  await settle('never admitted')
  expect(lookups()).toBeGreaterThan(0)

  // A late copy of the admission reserves again; what it belongs to is billed already.
  await db.passTime()
  await admit(db, askOf(key, 'r1', { nano: 10n }))
  await settle('r1')
  await releaseReservation(db, 'r1')
  expect(await readLedgerTotals(db)).toEqual({ balance: 979n, reserved: 0n, rows: 3, open: 0 })
  db.connection.close()
})

test('accounts stay in memory where others write nothing, or only to what accounts are not made of', async () => {
  const { wrap, take } = watched()
  const db = await openEmbedded(':memory:', wrap)
  const key = await addCustomer(db, { balance: 1_000n })
  const readsOfAccount = () => take(/FROM (customers|api_keys) WHERE/).length
  const sweepAt = async (now: number) => {
    const { expired, cleared } = await sweepAll(db, now)
    take(/./)
    return expired + cleared
  }
  await admit(db, askOf(key, 'r1', { nano: 10n }))
  expect(readsOfAccount()).toBeGreaterThan(0)
  const receipt = { ...receiptOf('of r1'), expiresAtMs: NOW + 1_000 }
  await commitSettlement(db, settlementOf(key, 'r1', { nano: 7n, receipt }))
  take(/./)
  expect(await sweepAt(NOW)).toBe(0)
  await admit(db, askOf(key, 'r2', { nano: 10n }))
  expect(await sweepAt(NOW + 1_000)).toBe(2)
  await admit(db, askOf(key, 'r3', { nano: 10n }))
  expect(readsOfAccount()).toBe(0)

  await creditCustomer(db, key.customerId, { reference: 'c1', amountNano: 1n }, NOW)
  await admit(db, askOf(key, 'r4', { nano: 10n }))
  expect(readsOfAccount()).toBeGreaterThan(0)
  db.connection.close()
})

test('evidence is stored without a fold, and no account is forgotten for it', async () => {
  const { wrap, take } = watched()
  const db = await openEmbedded(':memory:', wrap)
  const keys = [await addCustomer(db, { id: 'a' }), await addCustomer(db, { id: 'b' })]
  const settle = (key: PresentedKey, id: string, expiresAtMs: number) => {
    const receipt = { ...receiptOf(id), expiresAtMs, evidenceRefs: ['e'] }
    return commitSettlement(db, settlementOf(key, id, { nano: 7n, receipt }))
  }
  const expiries = () => db.connection.prepare('SELECT customer_id, expires_at FROM evidence').all()
  for (const key of keys) {
    const { missingEvidence } = await settle(key, `first of ${key.customerId}`, NOW + HOUR_MS)
    expect(missingEvidence).toEqual(['e'])
  }
  take(/./)
  for (const { customerId } of keys) {
    const expiresAtMs = NOW + HOUR_MS
    await storeEvidence(db, { customerId, sha256: 'e', dataB64: 'ZQ==', expiresAtMs })
  }
  expect(take(/./)).toEqual(keys.map(() => expect.stringContaining('INSERT INTO evidence')))

  // A later receipt keeps it for longer; storing it once more for the earlier one takes nothing back.
  const [first] = keys
  if (first === undefined) throw new Error('no key')
  expect(await settle(first, 'second of a', NOW + 5 * HOUR_MS)).toEqual({ missingEvidence: [] })
  const early = { customerId: 'a', sha256: 'e', dataB64: 'ZQ==', expiresAtMs: NOW + HOUR_MS }
  await storeEvidence(db, early)
  expect(await settle(first, 'third of a', NOW + 2 * HOUR_MS)).toEqual({ missingEvidence: [] })
  expect(take(/^(?!INSERT INTO evidence)[^]*FROM (customers|api_keys|evidence) WHERE/)).toEqual([])
  await db.passTime()
  expect(expiries()).toEqual([
    { customer_id: 'a', expires_at: NOW + 5 * HOUR_MS },
    { customer_id: 'b', expires_at: NOW + HOUR_MS },
  ])
  db.connection.close()
})

test('of too many accounts those that were read first are forgotten', async () => {
  const { wrap, take } = watched()
  const db = await openEmbedded(':memory:', wrap)
  for (const id of ['a', 'b', 'c']) await addCustomer(db, { id })
  const accounts = new Accounts(db.store)
  for (const id of ['a', 'b', 'c']) accounts.find(id)
  take(/./)
  accounts.forgetEarliest(2)
  expect(accounts.size).toBe(1)
  accounts.find('c')
  expect(take(/FROM customers WHERE/)).toHaveLength(0)
  accounts.find('b')
  expect(take(/FROM customers WHERE/)).toHaveLength(1)
  db.connection.close()
})

test('too many accounts are forgotten where keys are only looked up, too', async () => {
  const db = await openEmbedded()
  const first = await addCustomer(db, { id: 'first' })
  await admit(db, askOf(first, 'r1'))
  await db.passTime()
  const numbers = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)'
  db.connection.exec(`INSERT INTO customers (customer_id, name, billing, created_at)
    ${numbers} SELECT 'c' || n, '', 'prepaid', 0 FROM c`)
  db.connection.exec(`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
    ${numbers} SELECT 'c' || n, 'k', 'h', '', 0 FROM c`)
  const find = (key: PresentedKey): LedgerCall => ({ kind: 'find', key })
  const others = Array.from({ length: 20_000 }, (_, index) => {
    return { customerId: `c${index + 1}`, keyPrefix: 'k', keyHash: 'h' }
  })
  await db.ledgerEngine.operations(others.map(find))
  const isKnown = (key: PresentedKey) => db.ledgerEngine.atOnce(find(key)) !== undefined
  const known = () => [first, ...others].filter(isKnown).length
  expect(known()).toBe(20_001)
  await db.passTime()
  expect(known()).toBe(15_001)
  expect(isKnown(first)).toBe(false)
  // They are few enough now.
  await db.passTime()
  expect(known()).toBe(15_001)
  db.connection.close()
})

test('a ledger whose tables are gone at its start settles nothing', async () => {
  const path = join(directory, 'gone.sqlite')
  const before = await openEmbedded(path)
  const key = await addCustomer(before, { balance: 1_000n })
  before.connection.exec('ALTER TABLE usage RENAME TO hidden')
  before.connection.close()
  const db = await openEmbedded(path)
  await admit(db, askOf(key, 'r1', { nano: 10n }))
  const settlement = settlementOf(key, 'r1', { nano: 7n, receipt: receiptOf('of r1') })
  await expect(commitSettlement(db, settlement, ONE_RETRY)).rejects.toThrow('no such table')
  const used = db.connection.prepare(`SELECT COUNT(*) AS n FROM journal WHERE entries >= '1'`)
  expect(used.get()).toMatchObject({ n: 0 })
  db.connection.close()
})

test('after a start, a late copy of the admission of a billed request bills nothing', async () => {
  const path = join(directory, 'start.sqlite')
  const before = await openEmbedded(path)
  const key = await addCustomer(before, { balance: 1_000n })
  const settlement = settlementOf(key, 'billed', { nano: 7n, createdAtMs: NOW + 5 })
  await commitSettlement(before, settlement)
  await before.passTime()
  before.connection.close()

  const { wrap, take } = watched()
  const db = await openEmbedded(path, wrap)
  await admit(db, askOf(key, 'billed', { nano: 10n, now: NOW + 5 }))
  await commitSettlement(db, settlement)
  await admit(db, askOf(key, 'new', { nano: 10n, now: NOW + 6 }))
  take(/./)
  await commitSettlement(db, settlementOf(key, 'new', { nano: 7n, createdAtMs: NOW + 7 }))
  expect(take(/FROM usage WHERE/)).toEqual([])
  expect(await readLedgerTotals(db)).toMatchObject({ balance: 986n, rows: 2 })
  db.connection.close()
})

test('an operation with a claim has the accounts of other customers stay in memory', async () => {
  const { wrap, take } = watched()
  const db = await openEmbedded(':memory:', wrap)
  const acme = await addCustomer(db, { id: 'acme', balance: 1_000n })
  const beta = await addCustomer(db, { id: 'beta', balance: 1_000n })
  await admit(db, askOf(acme, 'a1', { nano: 10n }))
  await admit(db, askOf(beta, 'b1', { nano: 10n }))
  await admit(db, askOf(acme, 'a2', { nano: 10n, claim: CLAIM }))
  await commitSettlement(db, settlementOf(acme, 'a2', { nano: 7n, claim: CLAIM }))
  take(/./)
  await admit(db, askOf(beta, 'b2', { nano: 10n }))
  expect(take(/FROM customers/)).toEqual([])
  await admit(db, askOf(acme, 'a3', { nano: 10n }))
  expect(take(/FROM customers/)).toHaveLength(1)
  expect(await readLedgerTotals(db, 'acme')).toMatchObject({
    balance: 993n,
    reserved: 20n,
    open: 2,
  })
  expect(await readLedgerTotals(db, 'beta')).toMatchObject({ reserved: 20n, open: 2 })
  db.connection.close()
})
