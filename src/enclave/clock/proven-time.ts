/** Clocks of two machines may differ by this much. */
export const CLOCK_SKEW_MS = 60_000

/**
 * The newest time in a document whose signature this daemon verified. The clock is the host's to set: one that is behind
 * this was set back, or never right.
 */
export class ProvenTime {
  readonly #now: () => number
  #newest = 0

  /** `now` in milliseconds. */
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
