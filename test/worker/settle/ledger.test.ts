import { describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  releaseReservation,
  untilRestarted,
} from '../../../src/worker/settle/ledger.ts'
import { sweep, sweepAll } from '../../../src/worker/settle/sweep.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { migrate } from '../../../src/worker/storage/migrate.ts'
import { MIGRATIONS, SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'
import { describeLedgerContract } from './ledger-contract.ts'

describeLedgerContract('SQLite in Node', async () => {
  const db = openSqlite()
  const storage = sharedStorage(db)
  return { instances: [storage, storage], stop: async () => db.connection.close() }
})

test('a database of the first schema migrates with all that is in it', async () => {
  const db = openSqlite(':memory:', { migrate: false })
  await migrate(db, MIGRATIONS.slice(0, 1))
  const key = await addCustomer(db, { balance: 100n })
  db.connection
    .exec(`INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality,
      provider, billing_unit, prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
    VALUES ('old', 'acme', 1, 1, 'k', 'm', 'chat', 'p', 'token', 1, 1, 5, 0, 0);
    UPDATE customers SET usage_count = 1, balance_nano = 95, turn = 'a', turn_nano = 7`)
  await migrate(db, SQLITE_MIGRATIONS)
  await admit(db, askOf(key, 'r1', { nano: 80n }))
  await commitSettlement(db, settlementOf(key, 'r1', { nano: 30n, usageCapped: true }))
  expect(await readLedgerTotals(db)).toEqual({ balance: 65n, reserved: 0n, rows: 2, open: 0 })
  expect(db.connection.prepare('SELECT capped FROM usage ORDER BY seq').all()).toEqual([
    { capped: 0 },
    { capped: 1 },
  ])
})

describe('settlement', () => {
  test('gives back what was reserved beyond the cost', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 30n }))
    expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  })

  test('records in full what costs more than was reserved, and even more than there is', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 130n }))
    expect(await readLedgerTotals(db)).toEqual({ balance: -30n, reserved: 0n, rows: 1, open: 0 })
    await expect(admit(db, askOf(key, 'r2'))).rejects.toThrow('balance')
  })

  test('that comes after the reservation lapsed and was swept still bills', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n, expiresAt: NOW + 1 }))
    expect(await sweep(db, NOW + 1)).toMatchObject({ released: 1 })
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 30n }))
    expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  })

  test('without a receipt writes a row without one', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 1n, receipt: null }))
    expect(db.connection.prepare('SELECT id, receipt_id FROM usage').all()).toEqual([
      { id: 'r1', receipt_id: null },
    ])
    expect(db.connection.prepare("SELECT * FROM receipts WHERE customer_id <> ''").all()).toEqual(
      [],
    )
  })

  test('of a customer who does not exist is an error and not a silent loss', async () => {
    const db = openSqlite()
    const stranger = { customerId: 'nobody', keyPrefix: 'k', keyHash: 'h' }
    await expect(commitSettlement(db, settlementOf(stranger, 'r1'))).rejects.toThrow(
      new Error('internal error: the customer has no account'),
    )
  })

  test('that was committed although its answer was lost is found out by asking again', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    let calls = 0
    const deaf: Database = {
      batch: async (statements) => {
        const rows = await db.batch(statements)
        if (++calls === 1) throw new StorageUnavailable('the connection was lost')
        return rows
      },
    }
    await commitSettlement(deaf, settlementOf(key, 'r1', { nano: 30n, receipt: receiptOf('x') }))
    expect(calls).toBe(2)
    expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  })

  test('whose result was lost with the ledger process waits for the next one, so that a billed answer is delivered', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    let calls = 0
    const restarting: Database = {
      batch: async (statements) => {
        const rows = calls++ === 0 || calls > 4 ? await db.batch(statements) : []
        if (calls <= 4) throw new StorageUnavailable('the ledger process does not answer')
        return rows
      },
    }
    const pauses: number[] = []
    const settlement = settlementOf(key, 'r1', { nano: 30n, receipt: receiptOf('x') })
    const wait = async (ms: number) => void pauses.push(ms)
    await commitSettlement(restarting, settlement, { ...untilRestarted(() => 0), wait })
    expect(pauses).toEqual([500, 1_000, 2_000])
    expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  })

  test('fails where the storage stays away for ten seconds', async () => {
    let calls = 0
    const gone: Database = {
      batch: async () => {
        calls++
        throw new StorageUnavailable('nobody answers')
      },
    }
    let waited = 0
    const wait = async (ms: number) => void (waited += ms)
    const key = { customerId: 'acme', keyPrefix: 'k', keyHash: 'h' }
    const retry = { ...untilRestarted(() => 0), wait }
    await expect(commitSettlement(gone, settlementOf(key, 'r1'), retry)).rejects.toThrow(
      new StorageUnavailable('nobody answers'),
    )
    expect({ calls, waited }).toEqual({ calls: 7, waited: 10_500 })
  })

  test('is tried only twice where the storage takes long for each, because others may wait for it', async () => {
    const clock = { now: 0 }
    let calls = 0
    const locked: Database = {
      batch: async () => {
        calls++
        clock.now += 10_000
        throw new StorageUnavailable('the row is locked')
      },
    }
    const key = { customerId: 'acme', keyPrefix: 'k', keyHash: 'h' }
    const retry = untilRestarted(() => clock.now)
    await expect(commitSettlement(locked, settlementOf(key, 'r1'), retry)).rejects.toThrow(
      'the row is locked',
    )
    expect(calls).toBe(2)
  })

  test('followed by a release changes nothing more', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 30n }))
    await releaseReservation(db, 'r1')
    expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  })
})

describe('a sweep', () => {
  test('works in bounded rounds and says when the next is due', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { billing: 'postpaid' })
    expect(await sweep(db, NOW)).toEqual({ released: 0, expired: 0, cleared: 0, next: undefined })
    for (let i = 0; i < 5; i++) {
      await admit(db, askOf(key, `open-${i}`, { nano: 1n, expiresAt: NOW + 10 }))
      const receipt = receiptOf(`receipt-${i}`, { expiresAtMs: NOW + 20 })
      await commitSettlement(db, settlementOf(key, `done-${i}`, { receipt }))
    }
    const limits = { reservations: 3, receipts: 2 }
    const round = (now: number) => sweep(db, now, limits)
    expect(await round(NOW)).toEqual({ released: 0, expired: 0, cleared: 0, next: NOW + 10 })
    expect(await round(NOW + 10)).toEqual({ released: 3, expired: 0, cleared: 0, next: NOW + 10 })
    expect(await round(NOW + 10)).toEqual({ released: 2, expired: 0, cleared: 0, next: NOW + 20 })
    expect(await round(NOW + 20)).toMatchObject({ expired: 2, cleared: 0, next: NOW + 20 })
    expect(await round(NOW + 20)).toMatchObject({ expired: 2, cleared: 2, next: NOW + 20 })
    expect(await sweepAll(db, NOW + 20)).toEqual({
      released: 0,
      expired: 1,
      cleared: 3,
      next: undefined,
    })
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 0, rows: 5 })
  })
})
