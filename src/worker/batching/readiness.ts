import { after } from './deadline-timer.ts'

/** Maximum age of a cached result, ms. */
const MAX_AGE_MS = 250

/**
 * How long a caller waits at most, ms. The supervisor's probe waits for four seconds (src/host/serve/probes.ts); without an
 * answer, it would in the end kill a worker whose storage does not respond, with all of its requests.
 */
const ANSWER_WITHIN_MS = 3_000

/**
 * After this time a check that has not ended counts as lost, ms; a caller that has waited for it then has as much time left
 * for a check of its own.
 */
const CHECK_TIMEOUT_MS = ANSWER_WITHIN_MS / 2

/** How often a request polls whether another request's check has ended, ms. */
const POLL_INTERVAL_MS = 25

export interface ReadinessDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Rejects when the router is not ready to serve. */
  readonly check: () => Promise<void>
  /** Thrown when the check does not end in time. */
  readonly timeoutError: () => Error
}

/** Whether the router is ready. One check serves all callers that ask at about the same time. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #known: { readonly at: number; readonly failure: unknown } | undefined
  #checkingSince: number | undefined

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when the router is ready.
   * @throws what the check throws, or `timeoutError()` when there is no answer within three seconds
   */
  async confirm(): Promise<void> {
    const { now, pause, timeoutError } = this.#deps
    let leftMs = ANSWER_WITHIN_MS
    while (!within(now() - (this.#known?.at ?? Number.NEGATIVE_INFINITY), MAX_AGE_MS)) {
      const checking = now() - (this.#checkingSince ?? Number.NEGATIVE_INFINITY)
      // Polls, because a request must not await work that belongs to another one.
      if (!within(checking, CHECK_TIMEOUT_MS)) return this.#check(leftMs)
      if (leftMs <= 0) throw timeoutError()
      await pause(POLL_INTERVAL_MS)
      leftMs -= POLL_INTERVAL_MS
    }
    if (this.#known?.failure !== undefined) throw this.#known.failure
  }

  async #check(leftMs: number): Promise<void> {
    const { now, check, timeoutError } = this.#deps
    this.#checkingSince = now()
    const { promise: timeIsUp, reject } = Promise.withResolvers<never>()
    const timer = after(leftMs, () => reject(timeoutError()))
    try {
      await Promise.race([check(), timeIsUp])
      this.#known = { at: now(), failure: undefined }
    } catch (failure) {
      this.#known = { at: now(), failure }
      throw failure
    } finally {
      timer.stop()
      this.#checkingSince = undefined
    }
  }
}

/** Whether an age is below the maximum. It is negative after the clock was set back. */
function within(age: number, max: number): boolean {
  return age >= 0 && age < max
}
