import { z } from 'zod'
import { STRENGTHS } from '../../protocol/constraints.ts'
import { formatNano } from '../../protocol/money.ts'
import type { Row, Statement } from '../storage/database.ts'
import {
  bigintOf,
  numberOf,
  optionalBigintOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { readModels } from './admit.ts'
import { LIMIT_RESETS, periodOf, RESERVED_OF_KEY, spentInPeriod } from './key-limits.ts'

/** A key with its limits and what is left of them, as the customer and the operator see it; never the key itself. */
export interface KeyView {
  readonly key_prefix: string
  readonly name: string
  /** RFC 3339, like all times. */
  readonly created_at: string
  readonly expires_at: string | null
  /** Null: all. */
  readonly models: readonly string[] | null
  readonly requests_per_minute: number | null
  readonly tokens_per_minute: number | null
  readonly concurrent_requests: number | null
  /** Null: no attestation is required. */
  readonly min_attestation: string | null
  /** Decimal text in euros; null: no limit. */
  readonly limit_eur: string | null
  readonly limit_reset: string
  /** In the current period. */
  readonly spent_eur: string
  /** Reserved by open requests. */
  readonly reserved_eur: string
  /** Available for further requests; null: no limit. */
  readonly remaining_eur: string | null
  readonly resets_at: string | null
  /** When its secret was last rotated. */
  readonly rotated_at: string | null
  /** When the last of its former secrets expires; null: none is valid. */
  readonly former_ends_at: string | null
}

/** The schema of `KeyView` for the interface description. */
export const keyViewSchema = z.object({
  key_prefix: z.string(),
  name: z.string(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
  models: z.array(z.string()).nullable(),
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.int().nullable(),
  concurrent_requests: z.int().nullable(),
  min_attestation: z.enum(STRENGTHS).nullable(),
  limit_eur: z.string().nullable(),
  limit_reset: z.enum(LIMIT_RESETS),
  spent_eur: z.string(),
  reserved_eur: z.string(),
  remaining_eur: z.string().nullable(),
  resets_at: z.iso.datetime().nullable(),
  rotated_at: z.iso.datetime().nullable(),
  former_ends_at: z.iso.datetime().nullable(),
})

/** The columns that `readKeyView` reads, of a statement on `api_keys`. */
export function keyViewColumns(now: number): Statement {
  return sql`api_keys.key_prefix, api_keys.name, api_keys.created_at, api_keys.expires_at,
    api_keys.models, api_keys.requests_per_minute, api_keys.tokens_per_minute,
    api_keys.concurrent_requests, api_keys.min_attestation, api_keys.limit_reset,
    api_keys.rotated_at, (SELECT MAX(ends_at) FROM rotated_keys
      WHERE rotated_keys.customer_id = api_keys.customer_id
        AND rotated_keys.key_prefix = api_keys.key_prefix
        AND rotated_keys.ends_at > ${int64(now)}) AS former_ends_at,
    CAST(api_keys.limit_nano AS TEXT) AS limit_nano,
    CAST(${spentInPeriod(now)} AS TEXT) AS spent_nano,
    CAST(${RESERVED_OF_KEY} AS TEXT) AS reserved_of_key`
}

/** Keys that are not deleted. */
export const LIVE_KEYS = raw('api_keys.deleted_at IS NULL')

export function readKeyView(row: Row, now: number): KeyView {
  const limit = optionalBigintOf(row, 'limit_nano')
  const spent = bigintOf(row, 'spent_nano')
  const reserved = bigintOf(row, 'reserved_of_key')
  const reset = LIMIT_RESETS.find((name) => name === textOf(row, 'limit_reset')) ?? 'none'
  const left = limit === null ? null : limit - spent - reserved
  return {
    key_prefix: textOf(row, 'key_prefix'),
    name: textOf(row, 'name'),
    created_at: timeText(numberOf(row, 'created_at')),
    expires_at: optionalTimeText(optionalNumberOf(row, 'expires_at')),
    models: readModels(optionalTextOf(row, 'models')),
    requests_per_minute: optionalNumberOf(row, 'requests_per_minute'),
    tokens_per_minute: optionalNumberOf(row, 'tokens_per_minute'),
    concurrent_requests: optionalNumberOf(row, 'concurrent_requests'),
    min_attestation: optionalTextOf(row, 'min_attestation'),
    limit_eur: limit === null ? null : eurText(limit),
    limit_reset: reset,
    spent_eur: eurText(spent),
    reserved_eur: eurText(reserved),
    remaining_eur: left === null ? null : eurText(left > 0n ? left : 0n),
    resets_at: limit === null ? null : optionalTimeText(periodOf(reset, now).end),
    rotated_at: optionalTimeText(optionalNumberOf(row, 'rotated_at')),
    former_ends_at: optionalTimeText(optionalNumberOf(row, 'former_ends_at')),
  }
}

/** Euros with at least two decimals and as many as needed: `10.00`, `0.000000001`. */
export function eurText(nano: bigint): string {
  const [whole, fraction = ''] = formatNano(nano).split('.')
  return `${whole}.${fraction.padEnd(2, '0')}`
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

function optionalTimeText(ms: number | null): string | null {
  return ms === null ? null : timeText(ms)
}
