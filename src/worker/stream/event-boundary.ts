import { utf8, type Bytes } from '../../protocol/bytes.ts'

/** Ends a started line and event; between events it has no effect. */
export const END_OF_EVENT: Bytes = utf8('\n\n')

const LF = 0x0a

/**
 * Tracks whether a stream of bytes, split anywhere, is inside an event. Lines must end with LF alone, as the encoders write
 * them.
 */
export class EventBoundary {
  /** Number of consecutive line ends at the end of all bytes so far; the second one ends an event. */
  #lineEnds = 2

  /** Whether the bytes so far end inside an event. */
  get insideEvent(): boolean {
    return this.#lineEnds < 2
  }

  pass(bytes: Uint8Array): void {
    let start = bytes.length
    while (start > 0 && bytes[start - 1] === LF) start -= 1
    const lineEnds = bytes.length - start
    this.#lineEnds = start === 0 ? this.#lineEnds + lineEnds : lineEnds
  }
}
