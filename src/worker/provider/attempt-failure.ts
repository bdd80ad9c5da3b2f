import { AttemptFailure } from './failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'

/** What a broken answer says of its route: rate limited where the provider said so, else unclassified. */
export function toAttemptFailure(error: unknown): unknown {
  if (!(error instanceof BrokenStream)) return error
  const kind = error.reason === 'rate_limited' ? 'rate_limited' : 'unclassified'
  return new AttemptFailure({ kind })
}
