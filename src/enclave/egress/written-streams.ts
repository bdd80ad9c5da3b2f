import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WrittenStream } from './written-stream.ts'

/** How long the record of an ended stream is kept for a worker that has not asked for it yet. */
const KEPT_MS = 60_000

/** The streams whose chunks are written here, and for a while those that have ended. */
export class WrittenStreams {
  readonly #streams = new Map<string, WrittenStream>()

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /**
   * Opens a stream under a name that is not in use. `open` is given what to call when it has ended.
   */
  add(name: string, open: (ended: () => void) => WrittenStream): void {
    this.#streams.set(
      name,
      open(() => {
        setTimeout(() => this.#streams.delete(name), KEPT_MS).unref()
      }),
    )
  }

  /** Ends a stream if it is open, and forgets it. Undefined where none of that name is known. */
  end(name: string): StreamRecord | undefined {
    const stream = this.#streams.get(name)
    this.#streams.delete(name)
    return stream?.stop()
  }
}
