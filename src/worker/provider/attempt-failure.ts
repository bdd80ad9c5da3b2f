import type { BrokenReason } from '../../protocol/stream-record.ts'
import { ApiError } from '../http/errors.ts'
import { AttemptFailure } from './failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'

/** Errors for limits of the router. They are no failures of the route: another route's answer would need as much. */
const OWN_LIMITS: Partial<Record<BrokenReason, () => ApiError>> = {
  no_memory: () =>
    new ApiError(
      'service_unavailable',
      'The router has no memory left for so large an event of the answer.',
      { retryAfter: 5 },
    ),
  text_too_long: () =>
    new ApiError(
      'answer_too_long',
      'The answer has more than the 8 Mi characters of text that the router holds until its end in this format.',
    ),
}

/**
 * Converts the error of an invalid answer: to an AttemptFailure (rate limited where the provider says so, else
 * unclassified), or to the client's error where one of the router's own limits was exceeded. Returns other errors unchanged.
 */
export function toAttemptFailure(error: unknown): unknown {
  if (!(error instanceof BrokenStream)) return error
  const ownLimit = OWN_LIMITS[error.reason]
  if (ownLimit !== undefined) return ownLimit()
  const kind = error.reason === 'rate_limited' ? 'rate_limited' : 'unclassified'
  return new AttemptFailure({ kind })
}
