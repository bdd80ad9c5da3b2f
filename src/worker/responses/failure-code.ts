import type { ErrorCode } from '../http/errors.ts'

/** Codes of `response.failed` that clients know better than ours. */
const CODES: Partial<Record<ErrorCode, string>> = {
  context_length_exceeded: 'context_length_exceeded',
  insufficient_balance: 'insufficient_quota',
  content_policy_violation: 'invalid_prompt',
  upstream_rejected: 'invalid_prompt',
  rate_limit_exceeded: 'rate_limit_exceeded',
  upstream_rate_limit: 'rate_limit_exceeded',
}

/**
 * The code under which a broken response is reported. All that is nobody's fault is called an overload: the client
 * that asks again by itself does so six times for `server_error`, each a paid request where output was delivered,
 * and once for this.
 */
export function failureCode(code: ErrorCode): string {
  return CODES[code] ?? 'server_is_overloaded'
}
