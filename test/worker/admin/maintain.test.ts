import { describe, expect, it } from 'vitest'
import { maintain } from '../../../src/worker/admin/maintain.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { listCustomer } from '../../../src/worker/storage/directory.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

describe('maintenance of databases that each hold one customer', () => {
  it('sweeps every customer of the directory, however many pages there are', async () => {
    const directory = openSqlite()
    const databases = new Map<string, Database>()
    const storage: Storage = {
      directory: () => directory,
      customer: (id) => databases.get(id) ?? directory,
    }
    const shared = openSqlite()
    for (let i = 0; i < 1001; i++) {
      const id = `c${i}`
      await listCustomer(directory, id, i)
      databases.set(id, shared)
    }
    const last = openSqlite()
    databases.set('c1000', last)
    await last.batch([
      sql`INSERT INTO customers (customer_id, name, billing, reserved_nano, created_at)
        VALUES ('c1000', 'last', 'prepaid', 5, 0)`,
      sql`INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at,
        expires_at) VALUES ('r', 'c1000', 'k', 5, 0, 10)`,
    ])
    expect(await maintain(storage, 9)).toEqual({ released: 0, expired: 0, cleared: 0 })
    expect(await maintain(storage, 11)).toEqual({ released: 1, expired: 0, cleared: 0 })
  })
})
