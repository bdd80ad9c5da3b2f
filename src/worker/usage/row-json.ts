import { formatNano } from '../../protocol/money.ts'
import type { Row } from '../storage/database.ts'
import {
  bigintOf,
  flagOf,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'

/**
 * The JSON of one usage row (see docs/api.md). `cost_eur` is a number written with all its digits: a double cannot
 * represent every amount, but a client that needs all digits can read them.
 */
export function usageRowJson(row: Row): string {
  const region = optionalTextOf(row, 'region')
  const before = {
    id: textOf(row, 'id'),
    model: textOf(row, 'model'),
    modality: textOf(row, 'modality'),
    provider: textOf(row, 'provider'),
    ...(region === null ? {} : { region }),
    billing_unit: textOf(row, 'billing_unit'),
    audio_seconds: optionalNumberOf(row, 'audio_seconds'),
    prompt_tokens: numberOf(row, 'prompt_tokens'),
    completion_tokens: numberOf(row, 'completion_tokens'),
  }
  const after = {
    discount_applied_pct: numberOf(row, 'discount_pct'),
    receipt_id: optionalTextOf(row, 'receipt_id'),
    failover: flagOf(row, 'failover'),
    ...(flagOf(row, 'capped') && { usage_capped: true }),
    key_prefix: optionalTextOf(row, 'key_prefix'),
    key_name: optionalTextOf(row, 'key_name'),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
  }
  return joinMembers(
    JSON.stringify(before),
    `{"cost_eur":${formatNano(bigintOf(row, 'cost_nano'))}}`,
    JSON.stringify(after),
  )
}

/** One JSON object with the members of several non-empty ones. */
function joinMembers(...objects: readonly string[]): string {
  return `{${objects.map((object) => object.slice(1, -1)).join(',')}}`
}
