import type { Database } from '../storage/database.ts'
import { raw, sql } from '../storage/sql.ts'

/** SQL condition: a customer whose erasure has begun no longer exists; once it is complete, its ledger belongs to a new id. */
export const IS_PRESENT = raw(
  'NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.customer_id = customers.customer_id)',
)

/** Whether there is a customer, or the ledger of one that was erased, under this id. */
export async function hasCustomer(db: Database, id: string): Promise<boolean> {
  const [rows = []] = await db.batch([
    sql`SELECT customer_id FROM customers WHERE customer_id = ${id} AND ${IS_PRESENT}`,
  ])
  return rows.length > 0
}
