import { after, type After, type DeadlineTimer } from '../batching/deadline-timer.ts'
import { OwnSignal } from '../calls/own-signal.ts'
import { StageClock } from '../stream/stage-clock.ts'
import { SilentFailure } from './failure.ts'

/**
 * The timeouts of one attempt. At most one stage runs at a time; when its time ends, the attempt is aborted with a timeout.
 * The end of the request aborts the attempt too, with its own reason.
 */
export class AttemptClock {
  /** Aborts the attempt; the reason is the error to throw. */
  readonly signal = new OwnSignal()
  readonly #stages: StageClock
  readonly #after: After
  readonly #leaveRequest: () => void

  /**
   * @param request its signal aborts when all attempts of the request must end: budget used up, or client disconnected
   * @param callAfter measures the times
   */
  constructor(
    request: { readonly signal: OwnSignal },
    now: () => number,
    callAfter: After = after,
  ) {
    this.#after = callAfter
    const abort = () => this.signal.abort(request.signal.reason)
    const onTimeout = () => this.signal.abort(new SilentFailure({ kind: 'timeout' }))
    this.#stages = new StageClock(now, onTimeout, callAfter)
    if (request.signal.aborted) abort()
    this.#leaveRequest = request.signal.onAbort(abort)
  }

  /** Ends the running stage and starts another of `ms` milliseconds; undefined: without a limit. */
  enter(ms: number | undefined): void {
    this.#stages.enter(ms)
  }

  /** Restarts the time limit of the stage. */
  progress(): void {
    this.#stages.progress()
  }

  /** Suspends the time limit until the next `progress`: what follows is not a delay of the provider. */
  pauseTimeout(): void {
    this.#stages.pauseTimeout()
  }

  /** Calls `passed` after `ms` milliseconds, independently of the stages. */
  after(ms: number, passed: () => void): DeadlineTimer {
    return this.#after(ms, passed)
  }

  /** Stops the timer and detaches from the request: the attempt has ended, or other code limits its time. */
  stop(): void {
    this.#stages.stop()
    this.#leaveRequest()
  }

  /** Aborts the attempt and closes its connection. */
  abort(reason: unknown): void {
    this.stop()
    this.signal.abort(reason)
  }
}
