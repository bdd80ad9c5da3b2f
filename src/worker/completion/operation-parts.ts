import type { ErrorCode } from '../http/errors.ts'

/** What every front door of the chat models can refuse a request with. */
export const CHAT_ERRORS: readonly ErrorCode[] = [
  'invalid_request_error',
  'missing_field',
  'invalid_timeout_override',
  'unsupported_reasoning',
  'unsupported_image_url',
  'context_length_exceeded',
  'content_policy_violation',
  'upstream_rejected',
  'insufficient_balance',
  'insufficient_quota',
  'model_not_allowed',
  'model_not_found',
  'request_too_large',
  'request_timeout',
  'rate_limit_exceeded',
  'upstream_rate_limit',
  'bad_gateway',
  'routes_unavailable',
  'route_not_priced',
  'upstream_timeout',
]
