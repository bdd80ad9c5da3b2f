import { expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import { sqlLedger } from '../../../src/worker/settle/sql-ledger.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import type { LedgerOperations } from '../../../src/worker/storage/ledger-operations.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

/** What arrives on the other side of a call that carries JSON. */
function received<Value>(value: Value): Value {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that it is the same is what the test is about
  return JSON.parse(JSON.stringify(value)) as Value
}

/** A database whose own operations are carried out where only JSON reaches them; `batch` is not for them. */
function remoteLedger(db: Database): { readonly db: Database; readonly calls: string[] } {
  const calls: string[] = []
  const far = sqlLedger(db)
  const ledger: LedgerOperations = {
    admit: async (entry) => {
      calls.push('admit')
      expect(received(entry)).toEqual(entry)
      return received(await far.admit(received(entry)))
    },
    settle: async (entry) => {
      calls.push('settle')
      expect(received(entry)).toEqual(entry)
      return received(await far.settle(received(entry)))
    },
    release: async (requestId) => {
      calls.push('release')
      return far.release(requestId)
    },
  }
  const batch = () => Promise.reject(new Error('not by a batch'))
  return { db: { batch, ledger }, calls }
}

test('an engine’s own operations are used, and get and give nothing but JSON', async () => {
  const sqlite = openSqlite()
  const key = await addCustomer(sqlite, { balance: 1_000n, plan: 'gold' })
  const { db, calls } = remoteLedger(sqlite)
  const plans = {
    standard: { discount_pct: 0 },
    gold: { discount_pct: 20, requests_per_minute: 9 },
  }
  const claim = {
    name: 'n'.repeat(64),
    fingerprint: 'f'.repeat(64),
    lifetimeMs: 1,
    customerBytes: 9,
  }
  const admission = await admit(db, askOf(key, 'r1', { nano: 100n, plans, claim }))
  expect(admission).toMatchObject({ plan: 'gold', discountPct: 20 })
  await admit(db, askOf(key, 'r2', { nano: 100n, plans }))
  const settlement = settlementOf(key, 'r1', { nano: 2n ** 60n, claim, receipt: receiptOf('x') })
  const alerts = { balanceBelowNano: 5n }
  await commitSettlement(db, { ...settlement, alerts })
  expect(await releaseReservation(db, 'r2')).toBe(true)
  expect(await releaseReservation(db, 'r2')).toBe(false)
  expect(calls).toEqual(['admit', 'admit', 'settle', 'release', 'release'])
  const balance = 1_000n - 2n ** 60n
  expect(await readLedgerTotals(sqlite)).toEqual({ balance, reserved: 0n, rows: 1, open: 0 })
  const events = sqlite.connection.prepare('SELECT type, created_at FROM webhook_events').all()
  expect(events).toEqual([{ type: 'balance.low', created_at: NOW }])
})
