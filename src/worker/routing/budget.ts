import { startDeadline, type After, type DeadlineTimer } from '../batching/deadline-timer.ts'

/**
 * The wall-clock budget of one request, shared by all its attempts. The reason of its signal is the error to throw.
 */
export class Budget {
  readonly #controller = new AbortController()
  readonly #now: () => number
  readonly #after: After | undefined
  readonly #listeners = new Set<() => void>()
  #timer: DeadlineTimer | undefined
  #endsAt = Number.POSITIVE_INFINITY
  #expired = false

  constructor(now: () => number, after?: After) {
    this.#now = now
    this.#after = after
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Whether the time ran out, rather than the budget being aborted for another reason. */
  get expired(): boolean {
    return this.#expired
  }

  /** Milliseconds until the limit. */
  left(): number {
    return Math.max(0, this.#endsAt - this.#now())
  }

  /** Replaces the running limit: after `ms` milliseconds the signal aborts with the error that `reason` makes. */
  limit(ms: number, reason: () => unknown): void {
    this.#timer?.stop()
    this.#endsAt = this.#now() + ms
    const passed = () => {
      if (!this.signal.aborted) this.#expired = true
      this.#end(reason())
    }
    this.#timer = startDeadline(ms, this.#now, passed, this.#after)
  }

  /**
   * Calls `listener` when the signal aborts. For each attempt of a request: a listener of the signal itself costs several
   * calls of the platform.
   * @returns a function that removes it
   */
  onAbort(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Aborts the signal at once. */
  abort(reason: unknown): void {
    this.#timer?.stop()
    this.#end(reason)
  }

  /** Ends the budget: the request has finished. */
  end(): void {
    this.#timer?.stop()
  }

  #end(reason: unknown): void {
    this.#controller.abort(reason)
    for (const listener of this.#listeners) listener()
    this.#listeners.clear()
  }
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason when one is given and aborts before. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}
