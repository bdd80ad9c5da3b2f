import { json } from '../http/reply.ts'
import { numberOf } from '../storage/row.ts'
import type { Database } from '../storage/database.ts'
import { asAdmin } from './as-admin.ts'

/**
 * GET /admin/ledger: the position of the ledger, which never decreases. An operator who records it can detect a
 * ledger that was restored to an earlier state.
 */
export const showLedger = asAdmin(async (_request, context) => {
  return json({ position: await ledgerPosition(context.storage.directory()) })
})

/** The number of usage rows, credits, customers and keys ever written: none of these is ever deleted. */
export async function ledgerPosition(directory: Database): Promise<number> {
  const [rows = []] = await directory.batch([
    {
      sql: `SELECT CAST(
          (SELECT COALESCE(SUM(usage_count + erased_keys), 0) FROM customers) + (SELECT COUNT(*) FROM customers)
          + (SELECT COUNT(*) FROM credits) + (SELECT COUNT(*) FROM api_keys) AS TEXT) AS position`,
      params: [],
    },
  ])
  return rows[0] === undefined ? 0 : numberOf(rows[0], 'position')
}
