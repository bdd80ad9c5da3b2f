import { ApiError } from '../http/errors.ts'
import { AttemptFailure } from './failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'

/**
 * The attempt failure for an invalid answer: rate limited where the provider says so, else unclassified. Where the router has no
 * memory for it, the error for the client: another route would need as much. Other errors are returned unchanged.
 */
export function toAttemptFailure(error: unknown): unknown {
  if (!(error instanceof BrokenStream)) return error
  if (error.reason === 'no_memory') {
    const message = 'The router has no memory left for so large an event of the answer.'
    return new ApiError('service_unavailable', message, { retryAfter: 5 })
  }
  const kind = error.reason === 'rate_limited' ? 'rate_limited' : 'unclassified'
  return new AttemptFailure({ kind })
}
