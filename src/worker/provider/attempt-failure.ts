import { AttemptFailure } from './failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'

/**
 * The attempt failure for an invalid answer: rate limited where the provider says so, else unclassified. Other errors
 * are returned unchanged.
 */
export function toAttemptFailure(error: unknown): unknown {
  if (!(error instanceof BrokenStream)) return error
  const kind = error.reason === 'rate_limited' ? 'rate_limited' : 'unclassified'
  return new AttemptFailure({ kind })
}
