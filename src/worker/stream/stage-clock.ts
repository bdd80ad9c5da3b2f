import { startDeadline, type After, type DeadlineTimer } from '../batching/deadline-timer.ts'
import { Stopwatch } from './stopwatch.ts'

/**
 * The time limit of the current stage; at most one stage runs at a time.
 *
 * Progress inside a stage updates a time stamp instead of a timer, because a stream makes progress with every frame, and a
 * timer for each would cost more than relaying the frame.
 */
export class StageClock {
  readonly #now: () => number
  readonly #onTimeout: () => void
  readonly #sinceProgress: Stopwatch
  readonly #after: After | undefined
  #timer: DeadlineTimer | undefined
  #held = false

  /** @param now ms */
  constructor(now: () => number, onTimeout: () => void, after?: After) {
    this.#now = now
    this.#onTimeout = onTimeout
    this.#sinceProgress = new Stopwatch(now)
    this.#after = after
  }

  /** Ends the running stage and starts another of `ms` milliseconds; undefined: without a limit. */
  enter(ms: number | undefined): void {
    this.#timer?.stop()
    this.progress()
    if (ms !== undefined) this.#watch(ms, ms)
  }

  /** Restarts the time limit of the stage. */
  progress(): void {
    this.#sinceProgress.restart()
    this.#held = false
  }

  /** Suspends the time limit until the next `progress`: what follows is not a delay of the provider. */
  pauseTimeout(): void {
    this.#held = true
  }

  /** Ends the running stage. */
  stop(): void {
    this.#timer?.stop()
  }

  #watch(limit: number, wait: number): void {
    const check = () => {
      const left = this.#held ? limit : limit - this.#sinceProgress.elapsed()
      if (left > 0) this.#watch(limit, left)
      else this.#onTimeout()
    }
    this.#timer = startDeadline(wait, this.#now, check, this.#after)
  }
}
