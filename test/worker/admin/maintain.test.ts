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
    expect(await maintain(storage, 9, 9)).toEqual({ released: 0, expired: 0, cleared: 0 })
    expect(await maintain(storage, 11, 11)).toEqual({ released: 2, expired: 0, cleared: 0 })
  })

  it('at another time keeps the heads of receipts, which routers take for stored, and still ends', async () => {
    const db = openSqlite()
    const heads = async () =>
      (await db.batch([sql`SELECT sha256 FROM receipt_heads ORDER BY sha256`]))[0]
    await db.batch([
      sql`INSERT INTO receipt_heads (sha256, head, expires_at) VALUES ('in use', 'x', 1000), ('over', 'x', 10)`,
    ])
    const storage = sharedStorage(db)
    await maintain(storage, 5000, 20)
    expect(await heads()).toEqual([{ sha256: 'in use' }])
    await maintain(storage, 1000, 1000)
    expect(await heads()).toEqual([])
  })
})
