import type { BrokenReason } from '../../protocol/stream-record.ts'
import { ApiError } from '../http/errors.ts'
import { AttemptFailure } from './failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'

/** What is no failure of the route: another one would need as much. */
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
 * The attempt failure for an invalid answer: rate limited where the provider says so, else unclassified. Where a limit of the
 * router itself ended it, the error for the client. Other errors are returned unchanged.
 */
export function toAttemptFailure(error: unknown): unknown {
  if (!(error instanceof BrokenStream)) return error
  const ownLimit = OWN_LIMITS[error.reason]
  if (ownLimit !== undefined) return ownLimit()
  const kind = error.reason === 'rate_limited' ? 'rate_limited' : 'unclassified'
  return new AttemptFailure({ kind })
}
