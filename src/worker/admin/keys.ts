import { sha256Hex } from '../../protocol/digest.ts'
import type { NewApiKey } from '../auth/api-key.ts'
import type { Database, Row } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, sql, text } from '../storage/sql.ts'

/** An API key as the admin interface shows it: never the key itself. */
export interface KeyView {
  readonly key_prefix: string
  readonly name: string
  /** RFC 3339. */
  readonly created_at: string
}

/** Keeps a new key's hash. Undefined when there is no such customer. `now` is ms since the epoch. */
export async function insertKey(
  db: Database,
  customerId: string,
  key: NewApiKey & { readonly name: string },
  now: number,
): Promise<KeyView | undefined> {
  const [rows = []] = await db.batch([
    sql`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
      SELECT customer_id, ${text(key.prefix)}, ${text(await sha256Hex(key.key))},
        ${text(key.name)}, ${int64(now)}
      FROM customers WHERE customer_id = ${customerId}
      RETURNING key_prefix, name, created_at`,
  ])
  const [row] = rows
  return row === undefined ? undefined : viewOf(row)
}

/** The keys of a customer that are not deleted, oldest first. Undefined when there is no such customer. */
export async function listKeysOf(
  db: Database,
  customerId: string,
): Promise<readonly KeyView[] | undefined> {
  const [customers = [], keys = []] = await db.batch([
    sql`SELECT customer_id FROM customers WHERE customer_id = ${customerId}`,
    sql`SELECT key_prefix, name, created_at FROM api_keys
      WHERE customer_id = ${customerId} AND deleted_at IS NULL ORDER BY created_at, key_prefix`,
  ])
  return customers.length === 0 ? undefined : keys.map(viewOf)
}

/**
 * Marks a key as deleted: it opens nothing from now on, and usage rows no longer tell its prefix and name.
 * @returns whether there was such a key
 */
export async function markKeyDeleted(
  db: Database,
  customerId: string,
  keyPrefix: string,
  now: number,
): Promise<boolean> {
  const [rows = []] = await db.batch([
    sql`UPDATE api_keys SET deleted_at = ${int64(now)} WHERE customer_id = ${customerId}
      AND key_prefix = ${keyPrefix} AND deleted_at IS NULL RETURNING key_prefix`,
  ])
  return rows.length === 1
}

function viewOf(row: Row): KeyView {
  return {
    key_prefix: textOf(row, 'key_prefix'),
    name: textOf(row, 'name'),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
  }
}
