import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WrittenStream } from './written-stream.ts'

type Stoppable = Pick<WrittenStream, 'stop'>

/** The record of a stream that has ended. */
interface Kept {
  readonly record: StreamRecord
  readonly timer: NodeJS.Timeout
  readonly dropped: () => void
}

/** A stream, and once it has ended no more of it than its record. */
type Known = { readonly open: Stoppable } | Kept

/** Called when a stream has ended, with how long its record must be kept, ms, and what to call when it is dropped. */
type Ended = (record: StreamRecord, keptMs: number, dropped: () => void) => void

/** How long a record that was asked for is kept for a worker that did not get the answer and asks again, ms. */
const ASKED_AGAIN_MS = 15_000

/**
 * How long a record is kept once the worker has closed the stream's connection before it had taken all, ms: it asks at once, or
 * was killed.
 */
const LEFT_MS = 60_000

/** How many records wait to be asked for: more than workers have open requests. Beyond that, the oldest are dropped. */
const MAX_WAITING = 16_384

/** The streams whose chunks are written here, and for a while those that have ended. */
export class WrittenStreams {
  readonly #maxWaiting: number
  readonly #streams = new Map<string, Known>()
  /** Those whose record was not asked for yet, in the order in which they ended. */
  readonly #waiting = new Set<string>()

  constructor(maxWaiting = MAX_WAITING) {
    this.#maxWaiting = maxWaiting
  }

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /**
   * Opens a stream under a name that is not in use. `open` is given what to call when it has ended, and when the worker has
   * closed its connection before it had taken all.
   */
  add(name: string, open: (ended: Ended, left: () => void) => Stoppable) {
    const ended: Ended = (record, keptMs, dropped) => {
      if (!this.#streams.has(name)) return
      this.#waiting.add(name)
      this.#keep(name, record, keptMs, dropped)
      const [oldest] = this.#waiting
      if (oldest !== undefined && this.#waiting.size > this.#maxWaiting) this.#drop(oldest)
    }
    const left = () => {
      const kept = this.#kept(name)
      if (kept !== undefined && this.#waiting.has(name)) {
        this.#keep(name, kept.record, LEFT_MS, kept.dropped)
      }
    }
    this.#streams.set(name, { open: open(ended, left) })
  }

  /** Ends a stream if it is open; soon after, it is forgotten. Undefined where none of that name is known. */
  end(name: string): StreamRecord | undefined {
    const named = this.#streams.get(name)
    if (named !== undefined && 'open' in named) named.open.stop()
    const kept = this.#kept(name)
    if (kept === undefined) return undefined
    this.#waiting.delete(name)
    this.#keep(name, kept.record, ASKED_AGAIN_MS, kept.dropped)
    return kept.record
  }

  #kept(name: string): Kept | undefined {
    const known = this.#streams.get(name)
    return known === undefined || 'open' in known ? undefined : known
  }

  /** For this long from now on, whatever was said before. */
  #keep(name: string, record: StreamRecord, ms: number, dropped: () => void): void {
    clearTimeout(this.#kept(name)?.timer)
    const timer = setTimeout(() => this.#drop(name), ms)
    timer.unref()
    this.#streams.set(name, { record, timer, dropped })
  }

  #drop(name: string): void {
    const kept = this.#kept(name)
    clearTimeout(kept?.timer)
    this.#waiting.delete(name)
    this.#streams.delete(name)
    kept?.dropped()
  }
}
