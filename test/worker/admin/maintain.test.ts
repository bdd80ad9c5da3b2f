import { describe, expect, it } from 'vitest'
import { maintain } from '../../../src/worker/admin/maintain.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

describe('maintenance', () => {
  it('releases what is due, for every customer, and reports how much that was', async () => {
    const db = openSqlite()
    for (const id of ['a', 'b']) {
      await db.batch([
        sql`INSERT INTO customers (customer_id, name, billing, reserved_nano, created_at)
          VALUES (${id}, 'some name', 'prepaid', 5, 0)`,
        sql`INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at,
          expires_at) VALUES (${`of-${id}`}, ${id}, 'k', 5, 0, 10)`,
      ])
    }
    const storage = sharedStorage(db)
    expect(await maintain(storage, 9)).toEqual({ released: 0, expired: 0, cleared: 0 })
    expect(await maintain(storage, 11)).toEqual({ released: 2, expired: 0, cleared: 0 })
  })
})
