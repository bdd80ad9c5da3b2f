import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addLedgerRows } from '../../../scripts/bench/ledger-rows.ts'
import { SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'

let storageDir: string

beforeEach(() => {
  storageDir = mkdtempSync(join(tmpdir(), 'cmr-test-rows-'))
  mkdirSync(join(storageDir, 'cmr-ledger'))
})

afterEach(() => rmSync(storageDir, { recursive: true }))

function openFile(name: string): DatabaseSync {
  return new DatabaseSync(join(storageDir, 'cmr-ledger', `${name}.sqlite`))
}

/** A storage object's file that holds these customers. */
function makeFile(name: string, customers: readonly string[]): void {
  const database = openFile(name)
  for (const { statements } of SQLITE_MIGRATIONS) for (const text of statements) database.exec(text)
  for (const id of customers) {
    database
      .prepare(
        `INSERT INTO customers (customer_id, name, billing, usage_count, created_at)
        VALUES (?, '', 'postpaid', 0, 1)`,
      )
      .run(id)
  }
  database.close()
}

function usageOf(file: string, customerId: string): unknown {
  const database = openFile(file)
  const row = database
    .prepare(
      `SELECT usage_count, (SELECT COUNT(*) FROM usage u WHERE u.customer_id = c.customer_id) AS found
      FROM customers c WHERE customer_id = ?`,
    )
    .get(customerId)
  database.close()
  return { ...row }
}

describe('ledger rows of the benchmark', () => {
  it('come into the file that holds the customer, whichever others it holds', () => {
    openFile('metadata').close()
    openFile('without-tables').close()
    makeFile('one', ['anna', 'ben'])
    makeFile('two', ['carla', 'dora'])
    addLedgerRows(storageDir, 'dora', 1_000)
    expect(usageOf('two', 'dora')).toEqual({ usage_count: 1_000, found: 1_000 })
    expect(usageOf('two', 'carla')).toEqual({ usage_count: 0, found: 0 })
    expect(usageOf('one', 'anna')).toEqual({ usage_count: 0, found: 0 })
  })

  it('are refused for a customer whom no file holds', () => {
    makeFile('one', ['anna'])
    expect(() => addLedgerRows(storageDir, 'eve', 1)).toThrow('no file holds the customer')
  })
})
