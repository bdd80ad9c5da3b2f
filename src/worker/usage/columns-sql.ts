import type { Statement } from '../storage/database.ts'
import { raw, sql } from '../storage/sql.ts'

/** The columns that `columns.ts` reads, of `usage` joined with `LIVE_KEY`. */
export const ROW_COLUMNS =
  raw(`usage.seq, usage.id, usage.model, usage.modality, usage.provider, usage.region,
  usage.billing_unit, usage.audio_seconds, usage.prompt_tokens, usage.completion_tokens,
  CAST(usage.cost_nano AS TEXT) AS cost_nano, usage.discount_pct, usage.receipt_id,
  usage.failover, usage.capped, usage.created_at, api_keys.key_prefix, api_keys.name AS key_name`)

/** Joins the key of a row, unless the key was deleted. */
export const LIVE_KEY = raw(`LEFT JOIN api_keys ON api_keys.customer_id = usage.customer_id
  AND api_keys.key_prefix = usage.key_prefix AND api_keys.deleted_at IS NULL`)

/** The keys of a customer that were not deleted. */
export function liveKeys(customerId: string): Statement {
  return sql`SELECT key_prefix, name FROM api_keys
    WHERE customer_id = ${customerId} AND deleted_at IS NULL`
}

/** The key with a prefix, unless it was deleted. */
export function isLiveKey(customerId: string, keyPrefix: string): Statement {
  return sql`${liveKeys(customerId)} AND key_prefix = ${keyPrefix}`
}
