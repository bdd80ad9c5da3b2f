import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WrittenStream } from './written-stream.ts'

type Stoppable = Pick<WrittenStream, 'stop'>

/** A stream, and once it has ended no more of it than its record. */
type Known =
  | { readonly open: Stoppable }
  | { readonly record: StreamRecord; readonly timer: NodeJS.Timeout; readonly dropped: () => void }

/** Called when a stream has ended, with how long its record must be kept, ms, and what to call when it is dropped. */
type Ended = (record: StreamRecord, keptMs: number, dropped: () => void) => void

/** How long a record that was asked for is kept for a worker that did not get the answer and asks again, ms. */
const ASKED_AGAIN_MS = 15_000

/** The streams whose chunks are written here, and for a while those that have ended. */
export class WrittenStreams {
  readonly #streams = new Map<string, Known>()

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /** Opens a stream under a name that is not in use. `open` is given what to call when it has ended. */
  add(name: string, open: (ended: Ended) => Stoppable) {
    const ended: Ended = (record, keptMs, dropped) => {
      if (this.#streams.has(name)) this.#keep(name, record, keptMs, dropped)
    }
    this.#streams.set(name, { open: open(ended) })
  }

  /** Ends a stream if it is open; soon after, it is forgotten. Undefined where none of that name is known. */
  end(name: string): StreamRecord | undefined {
    const named = this.#streams.get(name)
    if (named !== undefined && 'open' in named) named.open.stop()
    const known = this.#streams.get(name)
    if (known === undefined || 'open' in known) return undefined
    clearTimeout(known.timer)
    this.#keep(name, known.record, ASKED_AGAIN_MS, known.dropped)
    return known.record
  }

  #keep(name: string, record: StreamRecord, ms: number, dropped: () => void): void {
    const timer = setTimeout(() => {
      this.#streams.delete(name)
      dropped()
    }, ms)
    timer.unref()
    this.#streams.set(name, { record, timer, dropped })
  }
}
