import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import { sweep } from '../../../src/worker/settle/sweep.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openSqlite, type SqliteDatabase } from '../../support/sqlite-database.ts'

/** How a call to the storage ends: well, lost before it was committed, or committed with the answer lost. */
type Fate = 'fine' | 'lost' | 'unanswered'

interface Step {
  readonly act: 'admit' | 'settle' | 'release' | 'sweep'
  readonly request: number
  readonly nano: bigint
  /** Seconds on the clock when it happens; steps come in any order of times. */
  readonly second: number
  readonly receipt: boolean
  readonly fate: Fate
}

class Crash extends Error {}

const STEP: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom('admit', 'settle', 'release', 'sweep'),
  request: fc.nat(7),
  nano: fc.oneof(fc.bigInt(0n, 60n), fc.bigInt(0n, 10n ** 17n)),
  second: fc.nat(600),
  receipt: fc.boolean(),
  fate: fc.constantFrom('fine', 'fine', 'lost', 'unanswered'),
})

/** A storage whose next call ends as told. */
function fated(db: Database, fate: Fate): Database {
  return {
    batch: async (statements) => {
      if (fate === 'lost') throw new Crash()
      const rows = await db.batch(statements)
      if (fate === 'unanswered') throw new Crash()
      return rows
    },
  }
}

async function perform(db: Database, key: PresentedKey, step: Step): Promise<void> {
  const id = `request-${step.request}`
  const now = NOW + step.second * 1000
  const store = fated(db, step.fate)
  if (step.act === 'admit') await admit(store, askOf(key, id, { nano: step.nano, now }))
  if (step.act === 'release') await releaseReservation(store, id)
  if (step.act === 'sweep') await sweep(store, now)
  if (step.act === 'settle') {
    const receipt = step.receipt ? receiptOf(`receipt of ${id}`) : null
    const settlement = settlementOf(key, id, { nano: step.nano, createdAtMs: now, receipt })
    await commitSettlement(store, settlement)
  }
}

async function survive(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof Crash || error instanceof ApiError)) throw error
  }
}

/** Ids that have a row; a row without its receipt, or a receipt without its row, throws. */
function settledIds(db: SqliteDatabase): readonly unknown[] {
  const orphans = db.connection
    .prepare(
      `SELECT u.id, r.receipt_id FROM usage u
        FULL OUTER JOIN receipts r ON r.receipt_id = u.receipt_id
        WHERE (u.receipt_id IS NOT NULL AND r.receipt_id IS NULL) OR (u.id IS NULL AND r.customer_id <> '')`,
    )
    .all()
  expect(orphans).toEqual([])
  return db.connection.prepare('SELECT id FROM usage').all()
}

test('the ledger balances after every step, whatever the order, crashes and repeats', async () => {
  const billing = fc.constantFrom('prepaid', 'postpaid')
  const steps = fc.array(STEP, { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(billing, steps, async (kind, history) => {
      const db = openSqlite()
      const key = await addCustomer(db, { billing: kind, balance: 100n })
      for (const step of history) {
        await survive(perform(db, key, step))
        await readLedgerTotals(db)
      }
      const ids = settledIds(db)
      for (const step of history) {
        if (step.act === 'settle') await survive(perform(db, key, { ...step, fate: 'fine' }))
      }
      const settled = new Set(history.filter((s) => s.act === 'settle').map((s) => s.request))
      expect(settledIds(db)).toHaveLength(settled.size)
      expect(ids.length).toBeLessThanOrEqual(settled.size)
      await sweep(db, NOW + 10_000_000)
      expect(await readLedgerTotals(db)).toMatchObject({
        reserved: 0n,
        open: 0,
        rows: settled.size,
      })
      db.connection.close()
    }),
    { numRuns: 120 },
  )
})

test('the first settlement of a request counts, and repeats with other figures change nothing', async () => {
  const costs = fc.array(fc.bigInt(0n, 10n ** 17n), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(costs, async (nanos) => {
      const db = openSqlite()
      const key = await addCustomer(db, { balance: 0n })
      for (const nano of nanos) await commitSettlement(db, settlementOf(key, 'same', { nano }))
      expect(await readLedgerTotals(db)).toMatchObject({ balance: -(nanos[0] ?? 0n), rows: 1 })
      db.connection.close()
    }),
    { numRuns: 30 },
  )
})
