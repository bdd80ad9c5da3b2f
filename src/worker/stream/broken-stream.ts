import type { Bytes } from '../../protocol/bytes.ts'

/**
 * Why a provider's answer cannot be passed on as whole.
 * - `error_event`: the provider reported an error inside its answer
 * - `rate_limited`: the same, and the error says that a rate limit was hit
 * - `malformed`: an event is no JSON object, no UTF-8, or has a member of the wrong type
 * - `too_long`: a line or an event is longer than 16 MiB
 * - `no_finish`: the answer ended without a finish reason
 * - `bad_finish`: the finish reason says that generation failed, or is no word at all
 * - `opening_too_long`: too many frames or bytes before the first real delta
 */
export type BrokenReason =
  | 'error_event'
  | 'rate_limited'
  | 'malformed'
  | 'too_long'
  | 'no_finish'
  | 'bad_finish'
  | 'opening_too_long'

/** A provider's answer that failed. Its message is the reason alone, so no provider text can leak through it. */
export class BrokenStream extends Error {
  readonly reason: BrokenReason
  /**
   * Chunks rebuilt from sound events that came before the fault in the same read. They belong to the client
   * ahead of the error event; empty before the commit point.
   */
  readonly output: Bytes

  constructor(reason: BrokenReason, output: Bytes = new Uint8Array(0)) {
    super(reason)
    this.name = 'BrokenStream'
    this.reason = reason
    this.output = output
  }
}
