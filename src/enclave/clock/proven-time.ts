/** How far the clocks of two machines may differ, ms. */
export const CLOCK_SKEW_MS = 60_000

/**
 * The newest time in a document whose signature this daemon verified. The host controls the clock: a clock that is
 * behind this time was set back, or was never right.
 */
export class ProvenTime {
  readonly #now: () => number
  #newest = 0

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** @param at the time in a verified document, in milliseconds */
  note(at: number): void {
    this.#newest = Math.max(this.#newest, at)
  }

  isAhead(): boolean {
    return this.#newest > this.#now() + CLOCK_SKEW_MS
  }
}
