import { ApiError } from '../http/errors.ts'
import { Stopwatch } from '../stream/stopwatch.ts'

/** Seconds after which clients should try again: another process has taken over by then. */
const RETRY_AFTER_SECONDS = 5

/** How often a process that is about to stop checks whether a request is still open, ms. */
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
 * Ends the open requests of a process before it is killed, so that their usage is settled, their resources are released, and
 * their clients get an error.
 */
export class Shutdown {
  readonly #waiting = new Set<() => void>()
  #isUnderWay = false

  /**
   * Calls `end` with the error for the client when the current request has to end. It runs as part of that request, to which
   * the resources belong; so each request awaits a promise of its own.
   * @returns to be called when the request has ended by itself
   */
  onEnd(end: (reason: ApiError) => void): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    void promise.then(() => end(stopped()))
    if (this.#isUnderWay) resolve()
    else this.#waiting.add(resolve)
    return () => void this.#waiting.delete(resolve)
  }

  /** Waits until no request is open. After `afterMs` milliseconds, ends those that still are. */
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
