/** Shorter windows count as none: timers are not finer, and so few streams cause no load. */
const MIN_WINDOW_MS = 4

/** The longest silence that joining may cause in a stream, ms. */
export const MAX_WINDOW_MS = 250

/** A stream counts as active for this long after its last chunk, ms. */
const ACTIVE_MS = 1_000

/** How often active streams are counted, ms. */
const COUNT_INTERVAL_MS = 100

/** A stream that shares the window. */
export interface WindowStream {
  /** When its last chunk was read, ms since the epoch. */
  arrivedAt: number
}

/** Changes the length of a window, ms; not called for windows that count as none. */
export type WindowShape = (ms: number) => number

const asItIs: WindowShape = (ms) => ms

/**
 * Makes windows `factor` times as long, but those below `upToMs` no longer than `upToMs`: nobody notices that, and fewer
 * chunks cost less.
 */
export function lengthened(factor: number, upToMs: number): WindowShape {
  return (ms) => Math.max(ms, Math.min(upToMs, ms * factor))
}

/**
 * The time in which each relayed stream may write one chunk: as long as the program takes to write one chunk for every
 * active stream. It is zero while there are few streams (docs/performance-findings.md, "Chunks that are joined").
 */
export class JoinWindow {
  /** Ms. */
  readonly now: () => number
  readonly #chunksPerSecond: number
  readonly #shape: WindowShape
  readonly #streams = new Set<WindowStream>()
  #ms = 0
  #countedAt = Number.NEGATIVE_INFINITY

  /**
   * @param now ms since the epoch
   * @param chunksPerSecond how many chunks the program can write per second
   */
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

  /** The current window, ms; 0 where nothing is to be joined. */
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

/** Whether an elapsed time is below a limit. It is negative after the clock was set back, which counts as elapsed. */
export function isWithin(elapsedMs: number, limitMs: number): boolean {
  return elapsedMs >= 0 && elapsedMs < limitMs
}
