import type { ApiError } from '../http/errors.ts'

interface Refusal {
  /** Ms. */
  readonly since: number
  readonly until: number
  readonly error: () => ApiError
}

const MAX_REFUSALS = 10_000

/**
 * Refusals that hold for a time, by the name of the refused party. A client that repeats a refused request gets the same
 * answer from memory, without a call to the storage or the daemon.
 */
export class Refusals {
  readonly #now: () => number
  readonly #byName = new Map<string, Refusal>()

  /** @param now ms since the epoch */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Refuses this name for `ms` milliseconds. Drops the oldest refusal where there are too many. */
  remember(name: string, ms: number, error: () => ApiError): void {
    this.#byName.delete(name)
    const since = this.#now()
    this.#byName.set(name, { since, until: since + ms, error })
    const [oldest] = this.#byName.keys()
    if (this.#byName.size > MAX_REFUSALS && oldest !== undefined) this.#byName.delete(oldest)
  }

  /** @throws ApiError while this name is refused */
  check(name: string): void {
    const refusal = this.#byName.get(name)
    if (refusal === undefined) return
    const now = this.#now()
    // Setting the clock back ends a refusal.
    if (now >= refusal.since && now < refusal.until) throw refusal.error()
    this.#byName.delete(name)
  }
}
