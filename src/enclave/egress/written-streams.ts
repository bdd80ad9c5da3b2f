import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WrittenStream } from './written-stream.ts'

type Stoppable = Pick<WrittenStream, 'stop'>

/** The record of a stream that has ended. */
interface Kept {
  readonly record: StreamRecord
  readonly timer: NodeJS.Timeout
  readonly dropped: () => void
}

/** An open stream, or the record of one that has ended. */
type Known = { readonly open: Stoppable } | Kept

/**
 * Called when a stream has ended, with how long its record must be kept, ms, and a function to call when the record is
 * dropped.
 */
type Ended = (record: StreamRecord, keptMs: number, dropped: () => void) => void

/** How long a record that was fetched is kept for a worker that did not get the answer and retries, ms. */
const ASKED_AGAIN_MS = 15_000

/**
 * How long a record is kept once the worker has closed the stream's connection before it had taken everything, ms: such
 * a worker fetches the record at once, or was killed.
 */
const DISCONNECTED_MS = 60_000

/** The streams whose chunks are written here; those that have ended stay for a while. */
export class WrittenStreams {
  readonly #max: number
  readonly #onFull: () => void
  readonly #streams = new Map<string, Known>()
  /** Streams whose record was not fetched yet, both open and ended ones. */
  readonly #unasked = new Set<string>()
  #isFullTold = false

  /**
   * @param max how many streams may be open or wait for their record to be fetched
   * @param onFull called when the limit is reached, and again only after the number has fallen to half in between
   */
  constructor(max: number, onFull: () => void) {
    this.#max = max
    this.#onFull = onFull
  }

  has(name: string): boolean {
    return this.#streams.has(name)
  }

  /**
   * Whether another stream may be added. An unfetched record is never dropped to make room: its request would then be
   * billed nothing.
   */
  hasRoom(): boolean {
    if (this.#unasked.size < this.#max) return true
    if (!this.#isFullTold) this.#onFull()
    this.#isFullTold = true
    return false
  }

  /**
   * Opens a stream under a name that is not in use, where there is room. `open` receives two callbacks: for when the
   * stream has ended, and for when the worker has closed its connection before it had taken everything.
   */
  add(name: string, open: (ended: Ended, disconnected: () => void) => Stoppable) {
    const ended: Ended = (record, keptMs, dropped) => {
      if (!this.#streams.has(name)) return
      this.#keep(name, record, keptMs, dropped)
    }
    const disconnected = () => {
      const kept = this.#kept(name)
      if (kept !== undefined && this.#unasked.has(name)) {
        this.#keep(name, kept.record, DISCONNECTED_MS, kept.dropped)
      }
    }
    this.#streams.set(name, { open: open(ended, disconnected) })
    this.#unasked.add(name)
  }

  /**
   * Ends a stream if it is open, and forgets it soon after.
   * @returns its record; undefined where no stream of that name is known
   */
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

  /** Keeps a record for `ms` milliseconds from now, whatever time was set before. */
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
