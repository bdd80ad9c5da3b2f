/** The HTTP status of every refusal of the link. */
const STATUS = {
  invalid_request: 400,
  unknown_evidence: 400,
  not_found: 404,
  method_not_allowed: 405,
  replayed: 409,
  constraints_unmet: 412,
  request_too_large: 413,
  rate_limited: 429,
  internal: 500,
  provider_unreachable: 502,
  provider_malformed: 502,
  attestation_unavailable: 503,
  exhausted: 503,
  sealed: 503,
  provider_unproven: 503,
  connect_timeout: 504,
  used_up: 507,
} as const

export type LinkErrorCode = keyof typeof STATUS

/** A refusal that is returned over the link as `{"error": {"code", "message"}}`. */
export class LinkError extends Error {
  readonly code: LinkErrorCode

  constructor(code: LinkErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LinkError'
    this.code = code
  }

  get status(): number {
    return STATUS[this.code]
  }
}
