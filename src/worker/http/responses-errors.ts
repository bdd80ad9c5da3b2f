import {
  ERROR_STATUS,
  errorBody,
  errorHeaders,
  publicCode,
  type ApiError,
  type ErrorCode,
} from './errors.ts'

/** Errors in the Responses format, chosen by how its clients react to them. */

/** The code that makes clients wait before a retry. Codex retries at once for every other code. */
const OVERLOADED = 'server_is_overloaded'

/** Codes of `response.failed` that clients recognise, where they differ from ours. */
const CODES: Partial<Record<ErrorCode, string>> = {
  context_length_exceeded: 'context_length_exceeded',
  insufficient_balance: 'insufficient_quota',
  // The same request would produce as long an answer again, and be paid for again.
  answer_too_long: 'invalid_prompt',
  content_policy_violation: 'invalid_prompt',
  upstream_rejected: 'invalid_prompt',
  rate_limit_exceeded: 'rate_limit_exceeded',
  upstream_rate_limit: 'rate_limit_exceeded',
}

/**
 * The code under which a failed response is reported. Failures that the request did not cause are reported as an
 * overload: Codex retries `server_error` six times, each a paid request where output was delivered, and this code once.
 */
export function failureCode(code: ErrorCode): string {
  return CODES[code] ?? OVERLOADED
}

/**
 * Temporary failures, answered as 503 with the code above: Codex sends such a request 5 times, but 30 times after any other
 * 5xx or an answer with `Retry-After`. The SDKs also read `retry-after-ms`.
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

/** Members whose name in this format differs from the chat format, to which a request is translated before it is checked. */
const PARAMS: ReadonlyMap<string, string> = new Map([['messages', 'input']])

/** The error body. If the format has a code of its own for an error, the router's code is in `service_code`. */
export function responsesErrorBody(error: ApiError): object {
  const body = errorBody(error)
  const { param = '' } = error.details
  const here = PARAMS.get(param)
  const known = {
    ...(here !== undefined && { param: here }),
    ...(MOMENTARY.has(error.code) && { code: OVERLOADED, service_code: publicCode(error.code) }),
  }
  return { ...body, error: { ...body.error, ...known } }
}

/**
 * The headers of an error. For temporary failures the delay is in `retry-after-ms`, which only clients that honour it read.
 */
export function responsesErrorHeaders(error: ApiError): Record<string, string> {
  const { 'retry-after': seconds, ...headers } = errorHeaders(error)
  if (seconds === undefined) return headers
  return MOMENTARY.has(error.code)
    ? { ...headers, 'retry-after-ms': String(Number(seconds) * 1000) }
    : { ...headers, 'retry-after': seconds }
}
