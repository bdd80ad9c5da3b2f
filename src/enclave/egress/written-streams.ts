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

/** The streams whose chunks are written here, and for a while those that have ended. */
export class WrittenStreams {
  readonly #max: number
  readonly #onFull: () => void
  readonly #streams = new Map<string, Known>()
  /** Those whose record was not asked for yet: open ones, and ended ones. */
  readonly #unasked = new Set<string>()
  #isFullTold = false

  /**
   * @param max how many streams may be open or wait to be asked for
   * @param onFull called when there are so many, and again only when half of them have gone in between
   */
  constructor(max: number, onFull: () => void) {
    this.#max = max
    this.#onFull = onFull
  }

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /** Whether another stream may be added. No record is dropped for it: its request would then be billed nothing. */
  hasRoom(): boolean {
    if (this.#unasked.size < this.#max) return true
    if (!this.#isFullTold) this.#onFull()
    this.#isFullTold = true
    return false
  }

  /**
   * Opens a stream under a name that is not in use, where there is room. `open` is given what to call when it has ended, and when the worker has
   * closed its connection before it had taken all.
   */
  add(name: string, open: (ended: Ended, left: () => void) => Stoppable) {
    const ended: Ended = (record, keptMs, dropped) => {
      if (!this.#streams.has(name)) return
      this.#keep(name, record, keptMs, dropped)
    }
    const left = () => {
      const kept = this.#kept(name)
      if (kept !== undefined && this.#unasked.has(name)) {
        this.#keep(name, kept.record, LEFT_MS, kept.dropped)
      }
    }
    this.#streams.set(name, { open: open(ended, left) })
    this.#unasked.add(name)
  }

  /** Ends a stream if it is open; soon after, it is forgotten. Undefined where none of that name is known. */
  end(name: string): StreamRecord | undefined {
    const named = this.#streams.get(name)
    if (named !== undefined && 'open' in named) named.open.stop()
    const kept = this.#kept(name)
    if (kept === undefined) return undefined
    this.#forgetUnasked(name)
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
    this.#forgetUnasked(name)
    this.#streams.delete(name)
    kept?.dropped()
  }

  #forgetUnasked(name: string): void {
    this.#unasked.delete(name)
    if (this.#unasked.size <= this.#max / 2) this.#isFullTold = false
  }
}
