import { StageClock } from '../stream/stage-clock.ts'
import { AttemptFailure } from './failure.ts'

/**
 * The timeouts of one attempt: at most one stage runs at a time, and its end aborts the attempt with a timeout. An
 * outer signal (the request's budget, a disconnected client) aborts it too, with its own reason.
 */
export class AttemptClock {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal
  readonly #onOuterAbort = () => this.#controller.abort(this.#outer.reason)
  readonly #stages: StageClock

  constructor(outer: AbortSignal, now: () => number) {
    this.#outer = outer
    this.#stages = new StageClock(now, () => {
      this.#controller.abort(new AttemptFailure({ kind: 'timeout' }))
    })
    if (outer.aborted) this.#onOuterAbort()
    else outer.addEventListener('abort', this.#onOuterAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the running stage and starts another of `ms` milliseconds; undefined: without a limit. */
  enter(ms: number | undefined): void {
    this.#stages.enter(ms)
  }

  /** Restarts the time limit of the stage. */
  progress(): void {
    this.#stages.progress()
  }

  /** Suspends the time limit until the next `progress`: what follows is not the provider's delay. */
  pauseTimeout(): void {
    this.#stages.pauseTimeout()
  }

  /** Stops the timer and lets go of the outer signal: the attempt has ended, or something else keeps its time. */
  stop(): void {
    this.#stages.stop()
    this.#outer.removeEventListener('abort', this.#onOuterAbort)
  }

  /** Aborts the attempt and releases its connection. */
  abort(reason: unknown): void {
    this.stop()
    this.#controller.abort(reason)
  }
}
