import type { ErrorCode } from '../http/errors.ts'
import { PAID_ANSWER_HEADERS, RECEIPT_HEADER } from '../http/headers-doc.ts'
import type { Operation } from '../http/operation.ts'
import { IDEMPOTENCY_ERRORS, IDEMPOTENCY_HEADER_DOC } from '../idempotency/key-header.ts'
import { MEMBER_HEADERS_DOC } from './header-members.ts'
import { TIMEOUT_HEADER_DOC } from './options.ts'

/** The request headers of every endpoint that bills by tokens. */
export const PAID_CHAT_HEADERS: NonNullable<Operation['headers']> = {
  ...RECEIPT_HEADER,
  ...IDEMPOTENCY_HEADER_DOC,
  ...TIMEOUT_HEADER_DOC,
  ...MEMBER_HEADERS_DOC,
}

/** The headers of these endpoints' answers. */
export const PAID_CHAT_ANSWER_HEADERS: NonNullable<Operation['answerHeaders']> = {
  ...PAID_ANSWER_HEADERS,
  'x-service-dropped-members': 'Members of the request that were not forwarded to the provider.',
}

/** The errors that every API format of the chat models can answer with. */
export const CHAT_ERRORS: readonly ErrorCode[] = [
  ...IDEMPOTENCY_ERRORS,
  'invalid_request_error',
  'missing_field',
  'invalid_attestation_constraint',
  'attestation_not_accepted',
  'invalid_timeout_override',
  'unsupported_reasoning',
  'unsupported_image_url',
  'context_length_exceeded',
  'content_policy_violation',
  'upstream_rejected',
  'insufficient_balance',
  'insufficient_quota',
  'model_not_allowed',
  'customer_suspended',
  'model_not_found',
  'request_too_large',
  'request_timeout',
  'answer_too_long',
  'rate_limit_exceeded',
  'upstream_rate_limit',
  'bad_gateway',
  'routes_unavailable',
  'route_not_priced',
  'upstream_timeout',
]
