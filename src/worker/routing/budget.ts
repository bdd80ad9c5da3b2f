/** The wall-clock budget of one request, shared by all its attempts. Its signal's reason is what to throw. */
export class Budget {
  readonly #controller = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Replaces the running limit: after `ms` milliseconds the signal aborts with the reason made then. */
  limit(ms: number, reason: () => unknown): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#controller.abort(reason()), ms)
  }

  /** Uses the budget up at once. */
  abort(reason: unknown): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#controller.abort(reason)
  }

  /** The request has ended by itself. */
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
