import type { Database } from './database.ts'
import { textOf } from './row.ts'

/** The directory's rows that are neither a customer's own nor a signing key. */

const KEYRING_SECRET = 'keyring'

/**
 * The directory's keyring secret as text, made once: whoever asks first stores `candidate`, and everybody,
 * on every instance, gets the one that was stored.
 */
export async function keyringSecret(
  directory: Database,
  candidate: string,
  now: number,
): Promise<string> {
  const [, rows = []] = await directory.batch([
    {
      sql: `INSERT INTO secrets (name, value, created_at) VALUES (?, ?, ?)
        ON CONFLICT (name) DO NOTHING`,
      params: [KEYRING_SECRET, candidate, now],
    },
    { sql: 'SELECT value FROM secrets WHERE name = ?', params: [KEYRING_SECRET] },
  ])
  const [row] = rows
  if (row === undefined) throw new Error('internal error: the keyring secret was not kept')
  return textOf(row, 'value')
}

/** Lists a new customer in the directory. */
export async function listCustomer(
  directory: Database,
  customerId: string,
  now: number,
): Promise<void> {
  await directory.batch([
    {
      sql: `INSERT INTO directory_customers (customer_id, created_at) VALUES (?, ?)
        ON CONFLICT (customer_id) DO NOTHING`,
      params: [customerId, now],
    },
  ])
}

/** A page of customer ids in their own order; `after` is the last id of the page before. */
export async function customerIds(
  directory: Database,
  limit: number,
  after = '',
): Promise<readonly string[]> {
  const [rows = []] = await directory.batch([
    {
      sql: 'SELECT customer_id FROM directory_customers WHERE customer_id > ? ORDER BY customer_id LIMIT ?',
      params: [after, limit],
    },
  ])
  return rows.map((row) => textOf(row, 'customer_id'))
}
