/** Requests that are remembered; as many again until they are forgotten together. */
const REMEMBERED = 10_000

/**
 * Which requests were settled lately, so that the tables need not be asked about one that is new. A request is admitted
 * before it is settled: one whose admission is younger than everything that was forgotten, and that is not among what is
 * remembered, was never settled.
 */
export class RecentlySettled {
  #latest = new Set<string>()
  #earlier = new Set<string>()
  /** When the last of the requests that are not remembered was settled, ms. */
  #forgottenUntil: number
  #latestUntil = 0
  #earlierUntil = 0

  /** @param until when the last request was settled, ms */
  constructor(until: number) {
    this.#forgottenUntil = until
  }

  /** @param settledAt the time in its entry, ms */
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

  /** Whether a request that was admitted at this time was certainly not settled before. */
  isSurelyNew(requestId: string, admittedAt: number): boolean {
    return (
      admittedAt > this.#forgottenUntil &&
      !this.#latest.has(requestId) &&
      !this.#earlier.has(requestId)
    )
  }
}
