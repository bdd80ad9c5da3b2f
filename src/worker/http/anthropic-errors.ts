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

/** Where this format has a status of its own: 529 is what its clients know for "no capacity at the moment". */
const STATUSES: Partial<Record<ErrorCode, number>> = { routes_unavailable: 529 }

/** How its clients recognise a prompt that they must shorten. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  context_length_exceeded: 'prompt is too long: it exceeds the context window of the model',
}

/** The status under which an error is answered in this format. */
export function anthropicStatus(code: ErrorCode): number {
  return STATUSES[code] ?? ERROR_STATUS[code]
}

/** The error body, also sent as the event of a broken stream. */
export function anthropicErrorBody(error: ApiError): object {
  const { info } = error.details
  return {
    type: 'error',
    error: {
      type: TYPES[anthropicStatus(error.code)] ?? 'api_error',
      message: MESSAGES[error.code] ?? error.message,
      ...(info !== undefined && { details: info }),
    },
  }
}
