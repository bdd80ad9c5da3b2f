import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  ONE_RETRY,
  releaseReservation,
  storeEvidence,
} from '../../../src/worker/settle/ledger.ts'
import type { SyncStore } from '../../../src/worker/storage/sync-store.ts'
import { raw, sql } from '../../../src/worker/storage/sql.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openEmbedded, type EmbeddedDatabase } from '../../support/sqlite-store.ts'

let directory = ''
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-journal-'))
  const db = await openEmbedded(join(directory, 'new.sqlite'))
  await addCustomer(db, { balance: OPENING })
  db.connection.close()
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

class Killed extends Error {}

/** Ends a life after so many steps: a step is a statement, a commit, or the moment after one. */
function mortal(steps: number) {
  const life = { steps, taken: 0 }
  const step = () => {
    if (life.taken === life.steps) throw new Killed('killed')
    life.taken += 1
  }
  const wrap = (store: SyncStore): SyncStore => ({
    run: (text, params) => {
      step()
      return store.run(text, params)
    },
    snapshot: (work) => store.snapshot(work),
    transact: async (work) => {
      const result = await store.transact(() => {
        const done = work()
        step()
        return done
      })
      step()
      return result
    },
  })
  return { life, wrap }
}

const OPENING = 10_000n
const COST = 7n
const KEY = { customerId: 'acme', keyPrefix: 'cmr_acme_k1', keyHash: 'hash of cmr_acme_k1' }

const settlementIn = (id: string) =>
  settlementOf(KEY, id, { nano: COST, receipt: receiptOf(`receipt of ${id}`) })

/** Requests of a few moments, with folds between them; `acknowledged` has what was confirmed before the end. */
async function live(db: EmbeddedDatabase, acknowledged: Set<string>): Promise<void> {
  const settle = async (id: string) => {
    await commitSettlement(db, settlementIn(id), ONE_RETRY)
    acknowledged.add(id)
  }
  for (const id of ['a', 'b', 'c', 'lost']) await admit(db, askOf(KEY, id, { nano: 100n }))
  await Promise.all(['a', 'b'].map(settle))
  await db.passTime()
  await admit(db, askOf(KEY, 'd', { nano: 100n }))
  await releaseReservation(db, 'lost')
  await Promise.all(['c', 'd'].map(settle))
  await settle('never admitted')
  await db.passTime()
  await settle('e')
  await readLedgerTotals(db)
}

const ALL = ['a', 'b', 'c', 'd', 'e', 'never admitted']

const idsIn = async (db: EmbeddedDatabase, table: string, column: string) => {
  const [rows = []] = await db.batch([
    sql`SELECT ${raw(column)} AS id FROM ${raw(table)} WHERE customer_id = 'acme' ORDER BY 1`,
  ])
  return rows.map(({ id }) => id)
}

/** A ledger of its own with a customer, on disk. */
function begin(name: string): string {
  const path = join(directory, `${name}.sqlite`)
  copyFileSync(join(directory, 'new.sqlite'), path)
  return path
}

/** How many steps an open ledger's life has, or until it is killed in one. */
async function liveAndDie(path: string, steps: number, acknowledged: Set<string>) {
  const { life, wrap } = mortal(Number.POSITIVE_INFINITY)
  const db = await openEmbedded(path, wrap)
  const before = life.taken
  life.steps = before + steps
  await live(db, acknowledged).catch(() => {})
  db.connection.close()
  return life.taken - before
}

/** All that was acknowledged is there once, and once the rest is settled again all is there once and nothing held. */
async function expectWhole(db: EmbeddedDatabase, acknowledged: ReadonlySet<string>): Promise<void> {
  const rows = await idsIn(db, 'usage', 'id')
  expect(rows).toEqual(expect.arrayContaining([...acknowledged]))
  expect(new Set(rows).size).toBe(rows.length)
  expect(await idsIn(db, 'receipts', 'receipt_id')).toEqual(rows.map((id) => `receipt of ${id}`))
  const books = await readLedgerTotals(db)
  expect(books.balance).toBe(OPENING - COST * BigInt(rows.length))
  for (const id of ALL) await commitSettlement(db, settlementIn(id))
  await sweepAll(db, NOW + 1_000_000)
  expect(await idsIn(db, 'usage', 'id')).toEqual(ALL)
  const balance = OPENING - COST * BigInt(ALL.length)
  expect(await readLedgerTotals(db)).toEqual({ balance, reserved: 0n, rows: ALL.length, open: 0 })
}

describe('a ledger with a journal', () => {
  test('that is killed in any step of its life has lost nothing it acknowledged and bills nothing twice', async () => {
    const everything = new Set<string>()
    const steps = await liveAndDie(begin('undisturbed'), Number.POSITIVE_INFINITY, everything)
    expect([...everything].toSorted()).toEqual(ALL)
    expect(steps).toBeGreaterThan(40)
    for (let step = 0; step < steps; step++) {
      const path = begin(`life-${step}`)
      const acknowledged = new Set<string>()
      await liveAndDie(path, step, acknowledged)
      const db = await openEmbedded(path)
      await expectWhole(db, acknowledged)
      db.connection.close()
    }
  }, 120_000)

  test('that is killed in any step of reading its journal and folding it reads it again', async () => {
    const path = begin('replay')
    const acknowledged = new Set<string>()
    const db = await openEmbedded(path)
    for (const id of ['a', 'b', 'c']) await admit(db, askOf(KEY, id, { nano: 100n }))
    await Promise.all(['a', 'b', 'c'].map((id) => commitSettlement(db, settlementIn(id))))
    for (const id of ['a', 'b', 'c']) acknowledged.add(id)
    db.connection.close()
    let died = 0
    for (let steps = 1; ; steps++) {
      const { life, wrap } = mortal(steps)
      const reopened = await openEmbedded(path, wrap).catch(() => undefined)
      await reopened?.passTime()
      reopened?.connection.close()
      if (life.taken < steps) break
      died += 1
    }
    expect(died).toBeGreaterThan(10)
    const after = await openEmbedded(path)
    await expectWhole(after, acknowledged)
    after.connection.close()
  }, 120_000)

  test('settles requests that it does not know any more, once', async () => {
    const path = begin('reset')
    const before = await openEmbedded(path)
    await admit(before, askOf(KEY, 'a', { nano: 100n }))
    before.connection.close()
    const db = await openEmbedded(path)
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 0 })
    await Promise.all([1, 2].map(() => commitSettlement(db, settlementIn('a'))))
    expect(await readLedgerTotals(db)).toMatchObject({ balance: OPENING - COST, rows: 1 })
    db.connection.close()
  })

  test('has reservations in its tables after a second, so a reset forgets no older one', async () => {
    const path = begin('older')
    const before = await openEmbedded(path)
    await admit(before, askOf(KEY, 'a', { nano: 100n }))
    await before.passTime()
    before.connection.close()
    const db = await openEmbedded(path)
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 100n, open: 1 })
    await expect(admit(db, askOf(KEY, 'b', { nano: OPENING - 99n }))).rejects.toThrow('balance')
    db.connection.close()
  })

  test('that is killed in any step of storing evidence has all of it that was acknowledged, and stores the rest again', async () => {
    const evidence = (sha256: string, expiresAtMs = NOW) => ({
      customerId: 'acme',
      sha256,
      dataB64: 'ZQ==',
      expiresAtMs,
    })
    const pieces = [evidence('e'), evidence('f'), evidence('e', NOW + 1_000)]
    /** Two that arrive together, beside a settlement, and one that is kept for longer later. */
    const liveOn = async (db: EmbeddedDatabase, acknowledged: Map<string, number>) => {
      const store = async (piece: (typeof pieces)[number]) => {
        await storeEvidence(db, piece)
        acknowledged.set(piece.sha256, piece.expiresAtMs)
      }
      const [first, second, later] = pieces
      if (!first || !second || !later) throw new Error('there are three')
      const settled = commitSettlement(db, settlementIn('a'), ONE_RETRY)
      await Promise.all([store(first), store(second), settled])
      await store(later)
    }
    const storedIn = (db: EmbeddedDatabase) => {
      const rows = db.connection.prepare('SELECT sha256, expires_at FROM evidence').all()
      return new Map(rows.map((row) => [String(row['sha256']), Number(row['expires_at'])]))
    }
    const dieAt = async (path: string, steps: number, acknowledged: Map<string, number>) => {
      const { life, wrap } = mortal(Number.POSITIVE_INFINITY)
      const db = await openEmbedded(path, wrap)
      const before = life.taken
      life.steps = before + steps
      await liveOn(db, acknowledged).catch(() => {})
      db.connection.close()
      return life.taken - before
    }
    const everything = new Map<string, number>()
    const undisturbed = begin('evidence')
    const steps = await dieAt(undisturbed, Number.POSITIVE_INFINITY, everything)
    expect([...everything.keys()].toSorted()).toEqual(['e', 'f'])
    expect(steps).toBeGreaterThan(6)
    const whole = await openEmbedded(undisturbed)
    const expected = storedIn(whole)
    whole.connection.close()
    for (let step = 0; step < steps; step++) {
      const path = begin(`evidence-${step}`)
      const acknowledged = new Map<string, number>()
      await dieAt(path, step, acknowledged)
      const db = await openEmbedded(path)
      const stored = storedIn(db)
      for (const [sha256, until] of acknowledged) {
        expect(stored.get(sha256)).toBeGreaterThanOrEqual(until)
      }
      for (const piece of pieces) await storeEvidence(db, piece)
      expect(storedIn(db)).toEqual(expected)
      db.connection.close()
    }
  }, 120_000)
})
