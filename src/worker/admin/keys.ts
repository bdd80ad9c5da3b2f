import type { z } from 'zod'
import { sha256Hex } from '../../protocol/digest.ts'
import type { NewApiKey } from '../auth/api-key.ts'
import { keyViewColumns, LIVE_KEYS, readKeyView, type KeyView } from '../settle/key-view.ts'
import type { Database, Statement } from '../storage/database.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'
import type { keyChangesSchema, newKeySchema } from './bodies.ts'

export type KeyChanges = z.output<typeof keyChangesSchema>

/**
 * Stores a new key's hash and limits. `now` is ms since the epoch.
 * @returns undefined when there is no such customer
 */
export async function insertKey(
  db: Database,
  customerId: string,
  key: NewApiKey & z.output<typeof newKeySchema>,
  now: number,
): Promise<KeyView | undefined> {
  const rows = await db.batch([
    sql`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
      SELECT customer_id, ${text(key.prefix)}, ${text(await sha256Hex(key.key))},
        ${text(key.name)}, ${int64(now)}
      FROM customers WHERE customer_id = ${customerId}`,
    ...changesOf(customerId, key.prefix, key),
    selectKey(customerId, key.prefix, now),
  ])
  const [row] = rows.at(-1) ?? []
  return row === undefined ? undefined : readKeyView(row, now)
}

/**
 * Changes a key's name and limits. Omitted members stay as they are; null lifts a limit. A changed `limit_reset`
 * restarts the count.
 * @returns undefined when the customer has no such key
 */
export async function updateKey(
  db: Database,
  customerId: string,
  keyPrefix: string,
  changes: KeyChanges,
  now: number,
): Promise<KeyView | undefined> {
  const rows = await db.batch([
    ...changesOf(customerId, keyPrefix, changes),
    selectKey(customerId, keyPrefix, now),
  ])
  const [row] = rows.at(-1) ?? []
  return row === undefined ? undefined : readKeyView(row, now)
}

/**
 * The keys of a customer that are not deleted, oldest first.
 * @returns undefined when there is no such customer
 */
export async function listKeysOf(
  db: Database,
  customerId: string,
  now: number,
): Promise<readonly KeyView[] | undefined> {
  const [customers = [], keys = []] = await db.batch([
    sql`SELECT customer_id FROM customers WHERE customer_id = ${customerId}`,
    sql`SELECT ${keyViewColumns(now)} FROM api_keys
      WHERE customer_id = ${customerId} AND ${LIVE_KEYS} ORDER BY created_at, key_prefix`,
  ])
  return customers.length === 0 ? undefined : keys.map((row) => readKeyView(row, now))
}

/**
 * Marks a key as deleted: it is no longer accepted, and usage rows no longer show its prefix and name.
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

function selectKey(customerId: string, keyPrefix: string, now: number): Statement {
  return sql`SELECT ${keyViewColumns(now)} FROM api_keys
    WHERE customer_id = ${customerId} AND key_prefix = ${keyPrefix} AND ${LIVE_KEYS}`
}

/** One statement for each member that is given. */
function changesOf(
  customerId: string,
  keyPrefix: string,
  changes: KeyChanges,
): readonly Statement[] {
  const { name, models, limit_eur: limit, limit_reset: reset, min_attestation: minimum } = changes
  const assignments = [
    ...(name === undefined ? [] : [sql`name = ${name}`]),
    ...(['expires_at', 'requests_per_minute', 'tokens_per_minute', 'concurrent_requests'] as const)
      .filter((column) => changes[column] !== undefined)
      .map((column) => sql`${raw(column)} = ${whole(changes[column] ?? null)}`),
    ...(models === undefined
      ? []
      : [sql`models = ${models === null ? null : JSON.stringify(models)}`]),
    ...(minimum === undefined ? [] : [sql`min_attestation = ${minimum}`]),
    ...(limit === undefined ? [] : [sql`limit_nano = ${whole(limit)}`]),
    ...(reset === undefined
      ? []
      : [
          sql`spent_nano = CASE WHEN limit_reset = ${reset} THEN spent_nano ELSE 0 END,
            limit_reset = ${reset}`,
        ]),
  ]
  return assignments.map(
    (assignment) => sql`UPDATE api_keys SET ${assignment} WHERE customer_id = ${customerId}
      AND key_prefix = ${keyPrefix} AND ${LIVE_KEYS}`,
  )
}

function whole(value: number | bigint | null): Statement {
  return { sql: 'CAST(? AS BIGINT)', params: [value === null ? null : value.toString()] }
}
