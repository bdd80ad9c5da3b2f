/**
 * How many chunks a second this program writes. One that it reads and writes itself costs a worker about 80 us, of which
 * writing is nearly a half: see docs/performance.md, "Chunks that are joined".
 */
const CHUNKS_PER_SECOND = 3_000

/** Below this nothing is joined: so few streams are no load. */
const MIN_WINDOW_MS = 4

/** A stream is never silent for longer than this because of joining. */
export const MAX_WINDOW_MS = 250

/** A stream counts as active for this long after its last chunk. */
const ACTIVE_MS = 1_000

/** How often active streams are counted. */
const COUNT_INTERVAL_MS = 100

/** One of the streams that share the time. */
export interface WindowStream {
  /** When a chunk of it was last read, ms. */
  arrivedAt: number
}

/**
 * The time in which each stream that this program relays may write one chunk: as long as all active ones take for one each. It
 * is zero while there are few.
 */
export class JoinWindow {
  /** Ms. */
  readonly now: () => number
  readonly #chunksPerSecond: number
  readonly #streams = new Set<WindowStream>()
  #ms = 0
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number, chunksPerSecond: number = CHUNKS_PER_SECOND) {
    this.now = now
    this.#chunksPerSecond = chunksPerSecond
  }

  enter(): WindowStream {
    const stream = { arrivedAt: this.now() }
    this.#streams.add(stream)
    return stream
  }

  leave(stream: WindowStream): void {
    this.#streams.delete(stream)
  }

  /** The window at a moment, ms; 0 where nothing is to be joined. */
  at(now: number): number {
    if (isWithin(now - this.#countedAt, COUNT_INTERVAL_MS)) return this.#ms
    this.#countedAt = now
    let active = 0
    for (const { arrivedAt } of this.#streams) if (isWithin(now - arrivedAt, ACTIVE_MS)) active += 1
    const ms = Math.min(MAX_WINDOW_MS, (active * 1_000) / this.#chunksPerSecond)
    this.#ms = ms < MIN_WINDOW_MS ? 0 : ms
    return this.#ms
  }
}

/** Whether an elapsed time is below a limit; a clock that was set back makes it negative, and the time is over. */
export function isWithin(elapsedMs: number, limitMs: number): boolean {
  return elapsedMs >= 0 && elapsedMs < limitMs
}
