import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCustomer } from '../../../src/worker/admin/customers.ts'
import { insertKey } from '../../../src/worker/admin/keys.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { sweep, sweepAll } from '../../../src/worker/settle/sweep.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import type { Migration } from '../../../src/worker/storage/migrate.ts'
import { SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import { addCustomer, NOW, receiptOf, settlementOf } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-test-erasure-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

test.each([300, 3_000, 40_000])(
  'of a body of about %i bytes nothing is left in the file once both rounds are checkpointed',
  async (length) => {
    const path = join(directory, `of-${length}.sqlite`)
    const db = openSqlite(path)
    db.connection.exec('PRAGMA secure_delete = OFF')
    const checkpoint = () => db.connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    // Page ends cut some markers in two, but a body is never left without a whole one.
    const leftInFile = async () => {
      const file = await readFile(path, 'latin1')
      return Array.from({ length: 40 }, (_, i) => i).filter((i) => file.includes(`secret-of-${i}.`))
    }

    const key = await addCustomer(db, { billing: 'postpaid' })
    for (let i = 0; i < 40; i++) {
      const jws = `secret-of-${i}.`.repeat(Math.ceil((length + 13 * i) / 13))
      const receipt = { ...receiptOf(`receipt-${i}`, { expiresAtMs: NOW + 1 + (i % 2) }), jws }
      await commitSettlement(db, settlementOf(key, `request-${i}`, { receipt }))
    }
    checkpoint()
    expect(await leftInFile()).toHaveLength(40)

    expect(await sweep(db, NOW + 1)).toMatchObject({ expired: 20, cleared: 0 })
    expect(await sweep(db, NOW + 1)).toMatchObject({ expired: 0, cleared: 20 })
    checkpoint()
    expect(await leftInFile()).toEqual(Array.from({ length: 20 }, (_, i) => 2 * i + 1))

    await sweep(db, NOW + 2)
    await sweep(db, NOW + 2)
    checkpoint()
    expect(await leftInFile()).toEqual([])
    db.connection.close()
  },
)

test.each([
  ['ASCII', 'Miller & Sons'],
  ['other characters, which take several bytes', 'Ännchens Müßiggang 😀 GmbH'],
])(
  'of the names of erased customers and their keys nothing is left in the file, be they of %s',
  async (kind, text) => {
    const path = join(directory, `names-${kind.length}.sqlite`)
    const db = openSqlite(path)
    db.connection.exec('PRAGMA secure_delete = OFF')
    const names = Array.from({ length: 8 }, (_, i) => [`${text} (${i})`, `Key of ${text} [${i}]`])
    const leftInFile = async () => {
      db.connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      const file = await readFile(path)
      // The end of a name is enough to know it by.
      return names.flat().filter((name) => file.includes(name.slice(-12)))
    }
    for (const [i, [name = '', ofKey = '']] of names.entries()) {
      const id = `customer-${i}`
      const terms = { plan: 'standard', billing: 'prepaid', receiptRetentionDays: null } as const
      await insertCustomer(db, id, { name, balanceNano: 1_000_000n, ...terms }, NOW)
      const key = { name: ofKey, key: `secret ${i}`, prefix: `prefix-${i}` }
      await insertKey(db, id, key, NOW)
    }
    expect(await leftInFile()).toEqual(names.flat())
    for (const i of names.keys()) await beginErasure(db, `customer-${i}`, `ledger-${i}`, NOW)
    expect(await leftInFile()).toEqual([])
    db.connection.close()
  },
)

/** The statements of a new database, and of one that an earlier release made. */
const SCHEMAS = {
  'receipt_id, customer_id': SQLITE_MIGRATIONS,
  'customer_id, receipt_id': SQLITE_MIGRATIONS.filter(
    ({ id }) => id !== 'sqlite-0000-receipts-by-id',
  ),
}

/** A database with the schema of one of them. */
function openWith(migrations: readonly Migration[], path?: string) {
  const db = openSqlite(path, { migrate: false })
  for (const { statements } of migrations) {
    for (const statement of statements) db.connection.exec(statement)
  }
  return db
}

test.each(
  [300, 1_100, 7_000].flatMap((length) =>
    Object.entries(SCHEMAS).map(([key, migrations]) => ({ length, key, migrations })),
  ),
)(
  'of the bodies of customers that are erased one after another, about $length bytes each, nothing is left either, where their key is ($key)',
  async ({ length, key: begin, migrations }) => {
    const path = join(directory, `erased-${length}-${begin}.sqlite`)
    const db = openWith(migrations, path)
    db.connection.exec('PRAGMA secure_delete = OFF')
    const names = ['one', 'two', 'three', 'four']
    const numbers = Array.from({ length: 24 }, (_, i) => i)
    const leftInFile = async () => {
      db.connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      const file = await readFile(path, 'latin1')
      return names.flatMap((name) => {
        const left = numbers.filter((i) => file.includes(`secret-of-${name}-${i}.`))
        return left.length === 0 ? [] : [`${name} ${left.length}`]
      })
    }

    const keys = new Map<string, Awaited<ReturnType<typeof addCustomer>>>()
    for (const id of names) keys.set(id, await addCustomer(db, { id, billing: 'postpaid' }))
    for (const i of numbers) {
      for (const [name, key] of keys) {
        const secret = `secret-of-${name}-${i}.`
        const jws = secret.repeat(Math.ceil((length + 3 * i) / secret.length))
        // Some of the last customer have expired before it is erased.
        const expiresAtMs = NOW + (name === 'four' && i % 3 === 0 ? 1 : 1_000_000)
        const receipt = { ...receiptOf(`receipt-${name}-${i}`, { expiresAtMs }), jws }
        await commitSettlement(db, settlementOf(key, `request-${name}-${i}`, { receipt }))
      }
    }
    expect(await leftInFile()).toEqual(['one 24', 'two 24', 'three 24', 'four 24'])
    const left = ['two 24', 'three 24', 'four 16']
    for (const id of names) {
      await beginErasure(db, id, `ledger-of-${id}`, NOW)
      await sweepAll(db, NOW + 1)
      expect(await leftInFile()).toEqual(left)
      left.shift()
    }
    db.connection.close()
  },
)

test.each(Object.entries(SCHEMAS))(
  'neither an erasure nor a sweep reads all receipts where their key is (%s)',
  async (key, migrations) => {
    const db = openWith(migrations)
    const columns = db.connection.prepare(
      "SELECT name FROM pragma_index_info('sqlite_autoindex_receipts_1')",
    )
    expect(
      columns
        .all()
        .map(({ name }) => name)
        .join(', '),
    ).toBe(key)
    const plans: string[] = []
    // The index of overwritten bodies has those of one round of the sweep, which clears them.
    const clears = (sql: string, plan: string) =>
      sql.startsWith('UPDATE receipts SET jws = NULL, body_state = 2\n') &&
      plan === 'SCAN receipts USING INDEX receipts_overwritten'
    const watched: Database = {
      batch: (statements) => {
        for (const { sql, params } of statements) {
          const rows = db.connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...params)
          const details = rows.map(({ detail }) => String(detail))
          plans.push(...details.filter((plan) => !clears(sql, plan)))
        }
        return db.batch(statements)
      },
    }
    const customer = await addCustomer(db, { billing: 'postpaid' })
    for (let i = 0; i < 5; i++) {
      const receipt = receiptOf(`receipt-${i}`, { expiresAtMs: NOW + 1 + i })
      await commitSettlement(db, settlementOf(customer, `request-${i}`, { receipt }))
    }
    await sweepAll(watched, NOW + 2)
    await beginErasure(watched, customer.customerId, 'ledger', NOW + 2)
    await sweepAll(watched, NOW + 2)
    const emptied = db.connection.prepare(
      "SELECT COUNT(*) AS count FROM receipts WHERE customer_id = 'ledger'",
    )
    expect(emptied.get()).toEqual({ count: 5 })
    const ofRows = plans.filter((plan) => /\b(receipts|usage)\b/.test(plan))
    expect(ofRows).toContain(
      `SEARCH receipts USING INDEX sqlite_autoindex_receipts_1 (${key.replace(', ', '=? AND ')}=?)`,
    )
    expect(ofRows.filter((plan) => plan.startsWith('SCAN '))).toEqual([])
    // With the customer alone, a key that begins with the receipt's id finds nothing, and the other one finds all.
    const ofReceipts = ofRows.filter((plan) => plan.startsWith('SEARCH receipts '))
    expect(ofReceipts.filter((plan) => plan.includes('(customer_id=?)'))).toEqual([])
    db.connection.close()
  },
)

/** What is left of five receipts, of which two have expired, and of their ledger. */
const ERASED = {
  erasures: 0,
  usage: [{ customer_id: 'ledger', receipt_id: null, count: 5 }],
  receipts: [{ customer_id: 'ledger', jws: null, body_state: 2, count: 5 }],
}

describe.each([
  ['is not written', false],
  ['is written, but its answer is lost', true],
])('an erasure of which one batch %s', (_what, isWritten) => {
  test('ends as if nothing had been, whichever batch that is', { timeout: 30_000 }, async () => {
    let broken = 0
    for (let at = 1; broken === at - 1; at += 1) {
      const db = openSqlite()
      let batches = 0
      const failing: Database = {
        batch: async (statements) => {
          batches += 1
          if (batches !== at) return db.batch(statements)
          broken += 1
          if (isWritten) await db.batch(statements)
          throw new StorageUnavailable('the storage is gone')
        },
      }
      const customer = await addCustomer(db, { billing: 'postpaid' })
      for (let i = 0; i < 5; i++) {
        const receipt = receiptOf(`receipt-${i}`, { expiresAtMs: NOW + (i < 2 ? 1 : 1_000) })
        await commitSettlement(db, settlementOf(customer, `request-${i}`, { receipt }))
      }
      const { customerId } = customer
      const erase = async (on: Database) => {
        await beginErasure(on, customerId, 'ledger', NOW + 1)
        await sweepAll(on, NOW + 1)
      }
      const outcome = await erase(failing).catch((error: unknown) => error)
      // The last erasure has fewer batches, and so meets no fault.
      expect(outcome instanceof StorageUnavailable).toBe(broken === at)
      await erase(db)
      const rowsOf = (query: string) => db.connection.prepare(query).all()
      const [erasures] = rowsOf('SELECT COUNT(*) AS count FROM erasures')
      expect({
        erasures: erasures?.['count'],
        usage: rowsOf('SELECT customer_id, receipt_id, COUNT(*) AS count FROM usage GROUP BY 1, 2'),
        receipts: rowsOf(
          "SELECT customer_id, jws, body_state, COUNT(*) AS count FROM receipts WHERE customer_id <> '' GROUP BY 1, 2, 3",
        ),
      }).toEqual(ERASED)
      db.connection.close()
    }
    expect(broken).toBeGreaterThan(30)
  })
})
