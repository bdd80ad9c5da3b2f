import { expect, test } from 'vitest'
import { listKeysOf, updateKey } from '../../../src/worker/admin/keys.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import {
  listQuarantined,
  quarantine,
  settleQuarantined,
} from '../../../src/worker/settle/quarantine.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import {
  addCustomer,
  askOf,
  NOW,
  one,
  readLedgerTotals,
  receiptOf,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

async function kept() {
  const db = openSqlite()
  const key = await addCustomer(db, { balance: 100n })
  await admit(db, askOf(key, 'r1', { nano: 80n }))
  const settlement = settlementOf(key, 'r1', { nano: 30n, receipt: receiptOf('secret') })
  await quarantine(db, settlement, NOW)
  await quarantine(db, settlement, NOW + 1)
  await releaseReservation(db, 'r1')
  const storage = { directory: db, customer: () => db }
  return { db, storage, settlement }
}

test('a settlement is kept once, as it is, without its receipt', async () => {
  const { db, settlement } = await kept()
  const { admission, row } = settlement
  expect(await listQuarantined(db, 10)).toEqual([
    {
      requestId: 'r1',
      customerId: 'acme',
      createdAtMs: NOW,
      settlement: {
        requestId: 'r1',
        admission: { customerId: admission.customerId, keyPrefix: admission.keyPrefix },
        row,
        receipt: null,
      },
    },
  ])
  expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 0n, rows: 0, open: 0 })
})

test('a settlement that is kept can be settled later, and is forgotten then', async () => {
  const { db, storage } = await kept()
  expect(await settleQuarantined(storage, 'r1', NOW + 1)).toBe(true)
  expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  expect(await listQuarantined(db, 10)).toEqual([])
  expect(await settleQuarantined(storage, 'r1', NOW + 1)).toBe(false)
})

test('a settlement that is kept is billed on the day on which it is settled, and so counts in that day’s limit', async () => {
  const { db, storage } = await kept()
  const [day, key] = [86_400_000, { customerId: 'acme', keyPrefix: 'cmr_acme_k1' }]
  const presented = { ...key, keyHash: `hash of ${key.keyPrefix}` }
  const limits = { limit_eur: 50n, limit_reset: 'daily' } as const
  await updateKey(db, key.customerId, key.keyPrefix, limits, NOW)
  const today = { nano: 40n, createdAtMs: NOW + day }
  await commitSettlement(db, settlementOf(presented, 'r2', today))
  await settleQuarantined(storage, 'r1', NOW + day + 1)
  expect(await one(db, sql`SELECT seq, created_at FROM usage WHERE id = 'r1'`)).toEqual({
    seq: 2,
    created_at: NOW + day + 1,
  })
  const [view] = (await listKeysOf(db, key.customerId, NOW + day + 2)) ?? []
  expect(view).toMatchObject({ spent_eur: '0.00000007', remaining_eur: '0.00' })
  const refused = admit(db, askOf(presented, 'r3', { nano: 1n, now: NOW + day + 2 }))
  expect(await rejectionOf(refused)).toMatchObject({
    code: 'insufficient_quota',
    message: "What is left of this key's limit does not cover the most that this request may cost.",
  })
})

test('a settlement that is refused again stays', async () => {
  const { db, storage } = await kept()
  db.connection.exec('ALTER TABLE usage RENAME TO other')
  await expect(settleQuarantined(storage, 'r1', NOW + 1)).rejects.toThrow('no such table')
  expect(await listQuarantined(db, 10)).toHaveLength(1)
})
