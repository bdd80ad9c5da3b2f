import { ApiError } from '../http/errors.ts'
import { Stopwatch } from '../stream/stopwatch.ts'

/** Seconds after which clients should try again: another process serves by then. */
const RETRY_AFTER_SECONDS = 5

/** How often a process that is about to stop looks whether a request is still open, ms. */
const LOOK_EVERY_MS = 50

const stopped = () =>
  new ApiError(
    'service_unavailable',
    'The router is being stopped or replaced, and could wait no longer for the answer.',
    { retryAfter: RETRY_AFTER_SECONDS },
  )

interface DrainDeps {
  /** Number of open requests. */
  readonly open: () => number
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
}

/**
 * Ends the open requests of a process before it is killed, so that what they have used is settled, what they hold is given
 * back, and their clients are told.
 */
export class Shutdown {
  readonly #waiting = new Set<() => void>()
  #isUnderWay = false

  /**
   * Calls `end` with the error for the client once the current request has to end, in that request: what it holds belongs to it,
   * so each waits for a promise of its own.
   * @returns what to call when the request has ended by itself
   */
  onEnd(end: (reason: ApiError) => void): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    void promise.then(() => end(stopped()))
    if (this.#isUnderWay) resolve()
    else this.#waiting.add(resolve)
    return () => void this.#waiting.delete(resolve)
  }

  /** Waits until no request is open. Those that still are after so many milliseconds are ended. */
  async drain(afterMs: number, { open, now, pause }: DrainDeps): Promise<void> {
    const begun = new Stopwatch(now)
    while (open() > 0) {
      if (begun.elapsed() >= afterMs) this.#endAll()
      await pause(LOOK_EVERY_MS)
    }
  }

  #endAll(): void {
    this.#isUnderWay = true
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const resolve of waiting) resolve()
  }
}
