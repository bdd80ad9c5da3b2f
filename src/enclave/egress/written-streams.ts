import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WrittenStream } from './written-stream.ts'

type Stoppable = Pick<WrittenStream, 'stop'>

/** A stream, and once it has ended no more of it than its record. */
type Known =
  | { readonly open: Stoppable }
  | { readonly record: StreamRecord; readonly timer: NodeJS.Timeout }

/** How long a record that was asked for is kept for a worker that did not get the answer and asks again, ms. */
const ASKED_AGAIN_MS = 15_000

/** The streams whose chunks are written here, and for a while those that have ended. */
export class WrittenStreams {
  readonly #streams = new Map<string, Known>()

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /**
   * Opens a stream under a name that is not in use. `open` is given what to call when it has ended, with how long the record
   * must be kept, ms.
   */
  add(name: string, open: (ended: (record: StreamRecord, ms: number) => void) => Stoppable) {
    const ended = (record: StreamRecord, ms: number) => {
      if (this.#streams.has(name)) this.#keep(name, record, ms)
    }
    this.#streams.set(name, { open: open(ended) })
  }

  /** Ends a stream if it is open; soon after, it is forgotten. Undefined where none of that name is known. */
  end(name: string): StreamRecord | undefined {
    const known = this.#streams.get(name)
    this.#streams.delete(name)
    if (known === undefined) return undefined
    if ('timer' in known) clearTimeout(known.timer)
    const record = 'record' in known ? known.record : known.open.stop()
    this.#keep(name, record, ASKED_AGAIN_MS)
    return record
  }

  #keep(name: string, record: StreamRecord, ms: number): void {
    const timer = setTimeout(() => this.#streams.delete(name), ms)
    timer.unref()
    this.#streams.set(name, { record, timer })
  }
}
