import type { Bytes } from '../../protocol/bytes.ts'

/**
 * Why a provider's answer cannot be passed on as complete.
 * - `error_event`: the provider reported an error inside its answer
 * - `rate_limited`: the same, and the error reports a rate limit
 * - `malformed`: an event is not a JSON object, not UTF-8, or has a member of the wrong type
 * - `too_long`: a line or an event is longer than 16 MiB
 * - `no_finish`: the answer ended without a finish reason
 * - `bad_finish`: the finish reason reports a failed generation, or is not a short string
 * - `opening_too_long`: too many frames or bytes before the first delta with content
 */
export type BrokenReason =
  | 'error_event'
  | 'rate_limited'
  | 'malformed'
  | 'too_long'
  | 'no_finish'
  | 'bad_finish'
  | 'opening_too_long'

/** A provider's answer that failed. Its message is the reason alone, so that no provider text can leak through it. */
export class BrokenStream extends Error {
  readonly reason: BrokenReason
  /**
   * Output from events before the error in the same read, to be sent ahead of the error event; empty before the
   * commit point.
   */
  readonly output: Bytes

  constructor(reason: BrokenReason, output: Bytes = new Uint8Array(0)) {
    super(reason)
    this.name = 'BrokenStream'
    this.reason = reason
    this.output = output
  }
}
