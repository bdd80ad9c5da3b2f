/**
 * All errors that a client can see: one table of codes, one class, one format. Status codes appear nowhere else in the
 * worker. The router writes all messages itself; a provider's text never becomes part of one.
 */
export const ERROR_TYPES = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  408: 'invalid_request_error',
  409: 'invalid_request_error',
  410: 'invalid_request_error',
  412: 'invalid_request_error',
  413: 'invalid_request_error',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'server_error',
  502: 'server_error',
  503: 'server_error',
  504: 'server_error',
} as const

type Status = keyof typeof ERROR_TYPES

export const ERROR_STATUS = {
  invalid_request_error: 400,
  invalid_parameter: 400,
  missing_field: 400,
  invalid_timeout_override: 400,
  invalid_attestation_constraint: 400,
  unsupported_reasoning: 400,
  unsupported_image_url: 400,
  context_length_exceeded: 400,
  content_policy_violation: 400,
  upstream_rejected: 400,
  invalid_content_type: 400,
  invalid_multipart: 400,
  invalid_model: 400,
  invalid_file: 400,
  unsupported_file_type: 400,
  /** A limit of the route; the router's own limit is `upload_too_large`, which clients also see as `file_too_large`. */
  file_too_large: 400,
  invalid_response_format: 400,
  invalid_encryption: 400,
  unauthorized: 401,
  key_expired: 401,
  session_ended: 401,
  insufficient_balance: 402,
  insufficient_quota: 402,
  unseal_refused: 403,
  model_not_allowed: 403,
  customer_suspended: 403,
  insufficient_scope: 403,
  cross_site_request: 403,
  not_found: 404,
  model_not_found: 404,
  unsupported_endpoint: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  idempotency_in_progress: 409,
  expired: 410,
  answer_not_kept: 410,
  attestation_not_accepted: 412,
  request_too_large: 413,
  upload_too_large: 413,
  idempotency_key_reused: 422,
  /**
   * A limit of the router: for answers that are not streamed, and for formats whose text must be held until the end of a
   * stream.
   */
  answer_too_long: 422,
  /** Answered in the format that clients of EHBP recognise. */
  key_config_mismatch: 422,
  rate_limit_exceeded: 429,
  upstream_rate_limit: 429,
  internal: 500,
  upstream_error: 502,
  bad_gateway: 502,
  service_unavailable: 503,
  routes_unavailable: 503,
  route_not_priced: 503,
  attestation_unavailable: 503,
  /** The router waits for its secrets; the host process sends this answer, not the worker. */
  sealed: 503,
  upstream_timeout: 504,
} as const satisfies Record<string, Status>

export type ErrorCode = keyof typeof ERROR_STATUS

/** Codes whose public name differs, because one public name has two statuses. */
const PUBLIC_CODES: Partial<Record<ErrorCode, string>> = { upload_too_large: 'file_too_large' }

/** The code as clients see it. */
export function publicCode(code: ErrorCode): string {
  return PUBLIC_CODES[code] ?? code
}

/**
 * Codes that a repeated request would get again, although some clients retry their status: a header tells these clients not
 * to.
 */
const NOT_RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'route_not_priced',
  'unauthorized',
  'key_expired',
  'session_ended',
])

const MAX_RETRY_AFTER_SECONDS = 59

export interface ErrorDetails {
  /** The request member or parameter at fault. */
  readonly param?: string
  /** Seconds until a retry may succeed; clamped to 1..59 and rounded up. */
  readonly retryAfter?: number
  /** Further headers, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>
  /** `error.details`, for clients that act on it; only some formats have it. */
  readonly info?: Readonly<Record<string, unknown>>
  /** Further members, at top level and inside `error`. */
  readonly members?: Readonly<Record<string, string>>
}

/** An answer to the client in the shape of an error. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.details = details
  }

  get status(): Status {
    return ERROR_STATUS[this.code]
  }
}

/** Further members may appear at top level and inside `error`. */
interface ErrorBody extends Record<string, unknown> {
  readonly error: Readonly<Record<string, unknown>>
}

/** The error body every OpenAI-format client reads, also sent as the event of a broken stream. */
export function errorBody(error: ApiError): ErrorBody {
  const members = error.details.members ?? {}
  return {
    ...members,
    error: {
      message: error.message,
      type: ERROR_TYPES[error.status],
      code: publicCode(error.code),
      param: error.details.param ?? null,
      ...members,
    },
  }
}

/** Headers of an error answer other than the content type. Every 429 carries `Retry-After`. */
export function errorHeaders(error: ApiError): Record<string, string> {
  const headers: Record<string, string> = { ...error.details.headers }
  const retryAfter = error.details.retryAfter ?? (error.status === 429 ? 1 : undefined)
  if (retryAfter !== undefined) {
    const whole = Math.ceil(Math.max(1, Math.min(retryAfter, MAX_RETRY_AFTER_SECONDS)))
    headers['retry-after'] = String(whole)
  }
  if (NOT_RETRYABLE.has(error.code)) headers['x-should-retry'] = 'false'
  return headers
}

/** The same error with a header that tells the client not to retry, because each retry would be billed. */
export function notToBeRepeated(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  const headers = { ...error.details.headers, 'x-should-retry': 'false' }
  return new ApiError(error.code, error.message, { ...error.details, headers })
}

/**
 * Ends the request of a client that has closed its connection. Nobody receives this error; logs and metrics count it as
 * caused by the client, not as a failure of the router.
 */
export function clientDisconnected(): ApiError {
  return new ApiError('invalid_request_error', 'The client closed its connection.')
}
