/** Below this nothing is joined: timers are no finer, and so few streams are no load. */
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

/** Changes the length of a window that is not zero, ms. */
export type WindowShape = (ms: number) => number

const asItIs: WindowShape = (ms) => ms

/** Makes short windows `factor` times as long, but no longer than `upToMs`: nobody notices that, and fewer chunks cost less. */
export function lengthened(factor: number, upToMs: number): WindowShape {
  return (ms) => Math.max(ms, Math.min(upToMs, ms * factor))
}

/**
 * The time in which each stream that a program relays may write one chunk: as long as all active ones take for one each. It
 * is zero while there are few (docs/performance-findings.md, "Chunks that are joined").
 */
export class JoinWindow {
  /** Ms. */
  readonly now: () => number
  readonly #chunksPerSecond: number
  readonly #shape: WindowShape
  readonly #streams = new Set<WindowStream>()
  #ms = 0
  #countedAt = Number.NEGATIVE_INFINITY

  /** @param chunksPerSecond for how many chunks a second there is time */
  constructor(now: () => number, chunksPerSecond: number, shape: WindowShape = asItIs) {
    this.now = now
    this.#chunksPerSecond = chunksPerSecond
    this.#shape = shape
  }

  enter(stream: WindowStream): void {
    this.#streams.add(stream)
  }

  leave(stream: WindowStream): void {
    this.#streams.delete(stream)
  }

  has(stream: WindowStream): boolean {
    return this.#streams.has(stream)
  }

  /** The window at a moment, ms; 0 where nothing is to be joined. */
  at(now: number): number {
    if (isWithin(now - this.#countedAt, COUNT_INTERVAL_MS)) return this.#ms
    this.#countedAt = now
    let active = 0
    for (const { arrivedAt } of this.#streams) if (isWithin(now - arrivedAt, ACTIVE_MS)) active += 1
    const ms = (active * 1_000) / this.#chunksPerSecond
    this.#ms = ms < MIN_WINDOW_MS ? 0 : Math.min(MAX_WINDOW_MS, this.#shape(ms))
    return this.#ms
  }
}

/** Whether an elapsed time is below a limit; a clock that was set back makes it negative, and the time is over. */
export function isWithin(elapsedMs: number, limitMs: number): boolean {
  return elapsedMs >= 0 && elapsedMs < limitMs
}
