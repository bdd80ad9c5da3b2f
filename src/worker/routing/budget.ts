import { OwnSignal } from '../calls/own-signal.ts'
import { startDeadline, type After, type DeadlineTimer } from '../batching/deadline-timer.ts'
import type { Shutdown } from '../limits/shutdown.ts'

/** The wall-clock budget of one request, shared by all its attempts. */
export class Budget {
  /** Aborts when the time is used up, or earlier; the reason is the error to throw. */
  readonly signal = new OwnSignal()
  readonly #now: () => number
  readonly #after: After | undefined
  #timer: DeadlineTimer | undefined
  #endsAt = Number.POSITIVE_INFINITY
  #expired = false
  readonly #forgetShutdown: (() => void) | undefined

  /**
   * @param now ms since the epoch
   * @param shutdown aborts the budget when the process is about to be killed
   */
  constructor(now: () => number, after?: After, shutdown?: Pick<Shutdown, 'onEnd'>) {
    this.#now = now
    this.#after = after
    this.#forgetShutdown = shutdown?.onEnd((reason) => this.abort(reason))
  }

  /** Whether the time ran out, rather than the budget being aborted for another reason. */
  get expired(): boolean {
    return this.#expired
  }

  /** Milliseconds until the limit; infinite without one. */
  left(): number {
    return Math.max(0, this.#endsAt - this.#now())
  }

  /** Replaces the running limit: after `ms` milliseconds the signal aborts with the error that `reason` makes. */
  limit(ms: number, reason: () => unknown): void {
    this.#timer?.stop()
    this.#endsAt = this.#now() + ms
    const passed = () => {
      if (!this.signal.aborted) this.#expired = true
      this.signal.abort(reason())
    }
    this.#timer = startDeadline(ms, this.#now, passed, this.#after)
  }

  /** Aborts the signal at once. */
  abort(reason: unknown): void {
    this.#timer?.stop()
    this.signal.abort(reason)
  }

  /** Ends the budget when the request has finished. */
  end(): void {
    this.#timer?.stop()
    this.#forgetShutdown?.()
  }
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason when a signal is given and aborts first. */
export function pause(ms: number, signal?: OwnSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget?.()
      resolve()
    }, ms)
    const leave = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const forget = signal?.onAbort(leave)
    if (signal?.aborted === true) leave()
  })
}
