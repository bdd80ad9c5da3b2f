import { AttemptFailure } from './failure.ts'

/**
 * The clock of one attempt: at most one stage runs at a time, and its end aborts the attempt with a
 * time-out. An outer signal (the request's budget, the client leaving) aborts it too, with its own reason.
 *
 * Progress inside a stage is a time stamp and not a new timer, because a stream makes progress with every
 * frame and a timer for each would cost more than relaying the frame.
 */
export class AttemptClock {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #now: () => number
  readonly #onOuterAbort = () => this.#controller.abort(this.#outer.reason)
  #timer: ReturnType<typeof setTimeout> | undefined
  #progressAt = 0
  #held = false

  constructor(outer: AbortSignal, now: () => number) {
    this.#outer = outer
    this.#now = now
    if (outer.aborted) this.#onOuterAbort()
    else outer.addEventListener('abort', this.#onOuterAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the running stage and starts another of `ms` milliseconds; undefined means without limit. */
  enter(ms: number | undefined): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.progress()
    if (ms !== undefined) this.#watch(ms, ms)
  }

  /** The stage's limit counts anew from here. */
  progress(): void {
    this.#progressAt = this.#now()
    this.#held = false
  }

  /** The wait that follows is not the provider's: the stage does not end before the next `progress`. */
  pauseTimeout(): void {
    this.#held = true
  }

  /** Stops the clock: the attempt has ended by itself. */
  stop(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#outer.removeEventListener('abort', this.#onOuterAbort)
  }

  /** Ends the attempt and frees its connection. */
  abort(reason: unknown): void {
    this.stop()
    this.#controller.abort(reason)
  }

  #watch(limit: number, wait: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#held ? limit : limit - (this.#now() - this.#progressAt)
      if (left > 0) this.#watch(limit, left)
      else this.#controller.abort(new AttemptFailure({ kind: 'timeout' }))
    }, wait)
  }
}
