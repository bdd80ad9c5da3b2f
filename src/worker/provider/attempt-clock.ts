import { startDeadline, type DeadlineTimer } from '../batching/deadline-timer.ts'
import { AttemptFailure } from './failure.ts'

/**
 * The timeouts of one attempt: at most one stage runs at a time, and its end aborts the attempt with a timeout. An
 * outer signal (the request's budget, a disconnected client) aborts it too, with its own reason.
 *
 * Progress inside a stage updates a time stamp instead of a timer, because a stream makes progress with every frame,
 * and a timer for each would cost more than relaying the frame.
 */
export class AttemptClock {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #now: () => number
  readonly #onOuterAbort = () => this.#controller.abort(this.#outer.reason)
  #timer: DeadlineTimer | undefined
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

  /** Ends the running stage and starts another of `ms` milliseconds; undefined: without a limit. */
  enter(ms: number | undefined): void {
    this.#timer?.stop()
    this.progress()
    if (ms !== undefined) this.#watch(ms, ms)
  }

  /** Restarts the time limit of the stage. */
  progress(): void {
    this.#progressAt = this.#now()
    this.#held = false
  }

  /** Suspends the time limit until the next `progress`: what follows is not the provider's delay. */
  pauseTimeout(): void {
    this.#held = true
  }

  /** Stops the timer: the attempt has ended. */
  stop(): void {
    this.#timer?.stop()
    this.#outer.removeEventListener('abort', this.#onOuterAbort)
  }

  /** Aborts the attempt and releases its connection. */
  abort(reason: unknown): void {
    this.stop()
    this.#controller.abort(reason)
  }

  #watch(limit: number, wait: number): void {
    this.#timer = startDeadline(wait, this.#now, () => {
      const left = this.#held ? limit : limit - (this.#now() - this.#progressAt)
      if (left > 0) this.#watch(limit, left)
      else this.#controller.abort(new AttemptFailure({ kind: 'timeout' }))
    })
  }
}
