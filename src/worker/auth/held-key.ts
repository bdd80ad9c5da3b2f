import type { Statement } from '../storage/database.ts'
import { int64, sql } from '../storage/sql.ts'
import type { PresentedKey } from './api-key.ts'

/**
 * A rotated key has several secrets: its current one, and former ones until their grace period is over. All of them are one
 * key, with one prefix, one set of limits and one spending total.
 */

type Presented = Pick<PresentedKey, 'customerId' | 'keyPrefix' | 'keyHash'>

/** SQL condition on `api_keys`: the secret is the key's current one or a former one. */
export function wasEverKey(key: Presented): Statement {
  return sql`(api_keys.key_hash = ${key.keyHash} OR ${endOfFormer(key)} IS NOT NULL)`
}

/** SQL condition: the secret is valid now. */
export function isKey(key: Presented, now: number): Statement {
  return sql`(api_keys.key_hash = ${key.keyHash} OR ${endOfFormer(key)} > ${int64(now)})`
}

/** SQL expression: when a former secret expires, in ms; null for the current one. */
export function endOfFormer({ customerId, keyPrefix, keyHash }: Presented): Statement {
  return sql`(SELECT ends_at FROM rotated_keys WHERE rotated_keys.customer_id = ${customerId}
    AND rotated_keys.key_prefix = ${keyPrefix} AND rotated_keys.key_hash = ${keyHash})`
}
