/** Requests in one generation. Two generations are kept; when the newer one is full, the older one is dropped. */
const REMEMBERED = 10_000

/**
 * Remembers recently settled requests, so that the tables need not be asked about a new one. A request is admitted before it
 * is settled: if its admission is later than the settlement of every forgotten request, and it is not among the remembered
 * ones, it was never settled.
 */
export class RecentlySettled {
  #latest = new Set<string>()
  #earlier = new Set<string>()
  /** When the last of the forgotten requests was settled, ms. */
  #forgottenUntil: number
  #latestUntil = 0
  #earlierUntil = 0

  /** @param until when the last request in the tables was settled, ms */
  constructor(until: number) {
    this.#forgottenUntil = until
  }

  /** @param settledAt the time of the settlement entry, ms */
  add(requestId: string, settledAt: number): void {
    if (this.#latest.size === REMEMBERED) {
      this.#forgottenUntil = Math.max(this.#forgottenUntil, this.#earlierUntil)
      this.#earlier = this.#latest
      this.#earlierUntil = this.#latestUntil
      this.#latest = new Set()
      this.#latestUntil = 0
    }
    this.#latest.add(requestId)
    this.#latestUntil = Math.max(this.#latestUntil, settledAt)
  }

  /** Whether a request that was admitted at this time (ms) is known not to have been settled before. */
  isSurelyNew(requestId: string, admittedAt: number): boolean {
    return (
      admittedAt > this.#forgottenUntil &&
      !this.#latest.has(requestId) &&
      !this.#earlier.has(requestId)
    )
  }
}
