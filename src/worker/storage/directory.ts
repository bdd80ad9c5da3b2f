import type { Database } from './database.ts'
import { textOf } from './row.ts'
import { int64, raw, sql } from './sql.ts'

/** Rows of the directory other than signing keys. */

const KEYRING_SECRET = 'keyring'

/**
 * The directory's keyring secret as text, created once: the first caller stores `candidate`, and every caller on every
 * instance gets the stored one.
 */
export async function keyringSecret(
  directory: Database,
  candidate: string,
  now: number,
): Promise<string> {
  const [, rows = []] = await directory.batch([
    sql`INSERT INTO secrets (name, value, created_at)
      VALUES (${KEYRING_SECRET}, ${candidate}, ${int64(now)}) ON CONFLICT (name) DO NOTHING`,
    sql`SELECT value FROM secrets WHERE name = ${KEYRING_SECRET}`,
  ])
  const [row] = rows
  if (row === undefined) throw new Error('internal error: the keyring secret was not stored')
  return textOf(row, 'value')
}

/** Lists a new customer in the directory. */
export async function listCustomer(
  directory: Database,
  customerId: string,
  now: number,
): Promise<void> {
  await directory.batch([
    sql`INSERT INTO directory_customers (customer_id, created_at)
      VALUES (${customerId}, ${int64(now)}) ON CONFLICT (customer_id) DO NOTHING`,
  ])
}

/**
 * A page of customer ids, oldest customer first; undefined where `after`, the last id of the previous page, no longer
 * exists.
 */
export async function customerIds(
  directory: Database,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<readonly string[] | undefined> {
  const later =
    after === undefined
      ? raw('')
      : sql`WHERE (created_at, customer_id) > (SELECT created_at, customer_id
          FROM directory_customers WHERE customer_id = ${after})`
  const [rows = [], listed = []] = await directory.batch([
    sql`SELECT customer_id FROM directory_customers ${later}
      ORDER BY created_at, customer_id LIMIT ${limit}`,
    sql`SELECT customer_id FROM directory_customers WHERE customer_id = ${after ?? ''}`,
  ])
  if (after !== undefined && listed.length === 0) return undefined
  return rows.map((row) => textOf(row, 'customer_id'))
}
