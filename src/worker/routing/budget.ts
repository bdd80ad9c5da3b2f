/**
 * The wall-clock budget of one request, shared by all its attempts. The reason of its signal is the error to throw.
 */
export class Budget {
  readonly #controller = new AbortController()
  readonly #now: () => number
  #timer: ReturnType<typeof setTimeout> | undefined
  #endsAt = Number.POSITIVE_INFINITY
  #expired = false

  constructor(now: () => number) {
    this.#now = now
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
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#endsAt = this.#now() + ms
    this.#timer = setTimeout(() => {
      if (!this.#controller.signal.aborted) this.#expired = true
      this.#controller.abort(reason())
    }, ms)
  }

  /** Aborts the signal at once. */
  abort(reason: unknown): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#controller.abort(reason)
  }

  /** Ends the budget: the request has finished. */
  end(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
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
