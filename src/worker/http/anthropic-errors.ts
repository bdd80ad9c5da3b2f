import { ERROR_STATUS, type ApiError, type ErrorCode } from './errors.ts'

/** Errors as clients of the Messages format read them: https://docs.claude.com/en/api/errors. */

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'timeout_error',
  409: 'invalid_request_error',
  410: 'invalid_request_error',
  412: 'invalid_request_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** Statuses of this format that differ from the router's: its clients know 529 as "no capacity at the moment". */
const STATUSES: Partial<Record<ErrorCode, number>> = { routes_unavailable: 529 }

/** The text by which clients recognise a prompt that they must shorten. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  context_length_exceeded: 'prompt is too long: it exceeds the context window of the model',
}

/** The status under which an error is answered in this format. */
export function anthropicStatus(code: ErrorCode): number {
  return STATUSES[code] ?? ERROR_STATUS[code]
}

/** The error body. */
export function anthropicErrorBody(error: ApiError): object {
  return bodyOf(error, TYPES[anthropicStatus(error.code)] ?? 'api_error')
}

/**
 * The event of a stream that broke after output was delivered. Failures that are not the client's fault have an error type
 * of their own here: Claude Code retries the usual ones (`api_error`, `overloaded_error`, `timeout_error`) up to three
 * times, each a paid request, and never retries an unknown type.
 */
export function anthropicStreamError(error: ApiError): object {
  const status = anthropicStatus(error.code)
  if (status < 500) return anthropicErrorBody(error)
  return bodyOf(error, 'incomplete_response_error')
}

function bodyOf(error: ApiError, type: string): object {
  const { info } = error.details
  return {
    type: 'error',
    error: {
      type,
      message: MESSAGES[error.code] ?? error.message,
      ...(info !== undefined && { details: info }),
    },
  }
}
