import { expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { releaseReservation } from '../../../src/worker/settle/ledger.ts'
import {
  listQuarantined,
  quarantine,
  settleQuarantined,
} from '../../../src/worker/settle/quarantine.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
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
  expect(await settleQuarantined(storage, 'r1')).toBe(true)
  expect(await readLedgerTotals(db)).toEqual({ balance: 70n, reserved: 0n, rows: 1, open: 0 })
  expect(await listQuarantined(db, 10)).toEqual([])
  expect(await settleQuarantined(storage, 'r1')).toBe(false)
})

test('a settlement that is refused again stays', async () => {
  const { db, storage } = await kept()
  db.connection.exec('ALTER TABLE usage RENAME TO other')
  await expect(settleQuarantined(storage, 'r1')).rejects.toThrow('no such table')
  expect(await listQuarantined(db, 10)).toHaveLength(1)
})
