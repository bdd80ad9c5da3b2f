import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { BrokenReason } from '../../protocol/stream-record.ts'

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

  /** The same failure after more output. */
  after(output: Bytes): BrokenStream {
    return new BrokenStream(this.reason, concatBytes(output, this.output))
  }
}
