import type { ErrorCode } from '../http/errors.ts'

/** Codes of `response.failed` that clients recognise, where they differ from ours. */
const CODES: Partial<Record<ErrorCode, string>> = {
  context_length_exceeded: 'context_length_exceeded',
  insufficient_balance: 'insufficient_quota',
  content_policy_violation: 'invalid_prompt',
  upstream_rejected: 'invalid_prompt',
  rate_limit_exceeded: 'rate_limit_exceeded',
  upstream_rate_limit: 'rate_limit_exceeded',
}

/**
 * The code under which a failed response is reported. Failures that the request did not cause are reported as an
 * overload: the client that retries by itself does so six times for `server_error`, each a paid request where output
 * was delivered, and once for this code.
 */
export function failureCode(code: ErrorCode): string {
  return CODES[code] ?? 'server_is_overloaded'
}
