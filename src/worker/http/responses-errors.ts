import {
  ERROR_STATUS,
  errorBody,
  errorHeaders,
  publicCode,
  type ApiError,
  type ErrorCode,
} from './errors.ts'

/** Errors as clients of the Responses format act on them. */

/** What its clients take for "not now, and asking at once is no use"; nothing else keeps Codex from asking at once. */
const OVERLOADED = 'server_is_overloaded'

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
  return CODES[code] ?? OVERLOADED
}

/**
 * Failures of the moment, answered as 503 with the code above: Codex asks 5 times for it, and 30 for any other 5xx. So it
 * does where the answer has `Retry-After`; the SDKs read `retry-after-ms` as well.
 */
const MOMENTARY: ReadonlySet<ErrorCode> = new Set([
  'bad_gateway',
  'routes_unavailable',
  'sealed',
  'service_unavailable',
])

/** The status under which an error is answered in this format. */
export function responsesStatus(code: ErrorCode): number {
  return MOMENTARY.has(code) ? ERROR_STATUS.service_unavailable : ERROR_STATUS[code]
}

/** The error body; where the code is not the router's own, that one is in `service_code`. */
export function responsesErrorBody(error: ApiError): object {
  const body = errorBody(error)
  if (!MOMENTARY.has(error.code)) return body
  const known = { code: OVERLOADED, service_code: publicCode(error.code) }
  return { ...body, error: { ...body.error, ...known } }
}

/** The headers of an error, with the wait where only those read it who keep to it. */
export function responsesErrorHeaders(error: ApiError): Record<string, string> {
  const { 'retry-after': seconds, ...headers } = errorHeaders(error)
  if (seconds === undefined) return headers
  return MOMENTARY.has(error.code)
    ? { ...headers, 'retry-after-ms': String(Number(seconds) * 1000) }
    : { ...headers, 'retry-after': seconds }
}
