import type { z } from 'zod'
import { sha256Hex } from '../../protocol/digest.ts'
import type { NewApiKey } from '../auth/api-key.ts'
import { keyViewColumns, LIVE_KEYS, readKeyView, type KeyView } from '../settle/key-view.ts'
import { IS_PRESENT } from '../settle/present-customer.ts'
import type { Database, Statement } from '../storage/database.ts'
import { int64, nullableInt64, raw, sql, text } from '../storage/sql.ts'
import { LIVE } from './customers.ts'
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
      FROM customers WHERE customer_id = ${customerId} AND ${LIVE}`,
    ...changesOf(customerId, key.prefix, key),
    selectKey(customerId, key.prefix, now),
  ])
  const [row] = rows.at(-1) ?? []
  return row === undefined ? undefined : readKeyView(row, now)
}

/**
 * Changes a key's name and limits. Omitted members stay unchanged; null removes a limit. Changing `limit_reset`
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
    sql`SELECT customer_id FROM customers WHERE customer_id = ${customerId} AND ${IS_PRESENT}`,
    sql`SELECT ${keyViewColumns(now)} FROM api_keys
      WHERE customer_id = ${customerId} AND ${LIVE_KEYS} ORDER BY created_at, key_prefix`,
  ])
  return customers.length === 0 ? undefined : keys.map((row) => readKeyView(row, now))
}

/** Maximum number of former secrets of a key that may be valid at the same time. */
export const MAX_FORMER_SECRETS = 10

export interface Rotation {
  /** The same key with a new secret. */
  readonly renewed: NewApiKey
  /** Time until the current secret expires, ms; former secrets that would expire later expire then, too. */
  readonly graceMs: number
}

/**
 * Gives a key a new secret. It remains the same key: limits, spending and requests in progress are unaffected.
 * @returns undefined when there is no such key, `full` when too many former secrets are in force
 */
export async function rotateKey(
  db: Database,
  customerId: string,
  { renewed, graceMs }: Rotation,
  now: number,
): Promise<KeyView | 'full' | undefined> {
  const key = sql`customer_id = ${customerId} AND key_prefix = ${renewed.prefix}`
  const endsAt = int64(now + graceMs)
  const hash = await sha256Hex(renewed.key)
  const room = sql`(SELECT COUNT(*) FROM rotated_keys WHERE ${key} AND ends_at > ${int64(now)})
    < ${raw(String(MAX_FORMER_SECRETS))}`
  const rows = await db.batch([
    sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${customerId}`,
    // The update finds the current hash among the former ones only if the insertion had room for it.
    sql`UPDATE rotated_keys SET ends_at = ${endsAt} WHERE ${key} AND ends_at > ${endsAt}`,
    sql`INSERT INTO rotated_keys (customer_id, key_prefix, key_hash, ends_at)
      SELECT customer_id, key_prefix, key_hash, ${endsAt} FROM api_keys
      WHERE ${key} AND ${LIVE_KEYS} AND ${room}`,
    sql`UPDATE api_keys SET key_hash = ${hash}, rotated_at = ${int64(now)}
      WHERE ${key} AND ${LIVE_KEYS} AND EXISTS (SELECT 1 FROM rotated_keys
        WHERE rotated_keys.customer_id = api_keys.customer_id
          AND rotated_keys.key_prefix = api_keys.key_prefix
          AND rotated_keys.key_hash = api_keys.key_hash)
      RETURNING key_prefix`,
    selectKey(customerId, renewed.prefix, now),
  ])
  const [row] = rows.at(-1) ?? []
  if (row === undefined) return undefined
  return rows.at(-2)?.length === 1 ? readKeyView(row, now) : 'full'
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

/** Builds one statement for each member that is given. */
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
      .map((column) => sql`${raw(column)} = ${nullableInt64(changes[column] ?? null)}`),
    ...(models === undefined
      ? []
      : [sql`models = ${models === null ? null : JSON.stringify(models)}`]),
    ...(minimum === undefined ? [] : [sql`min_attestation = ${minimum}`]),
    ...(limit === undefined ? [] : [sql`limit_nano = ${nullableInt64(limit)}`]),
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
