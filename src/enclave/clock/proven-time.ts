/** How far the daemon's clock may be behind a time that was signed, or behind its own earlier reading, ms. */
export const CLOCK_BEHIND_MS = 60_000

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
    return this.#newest > this.#now() + CLOCK_BEHIND_MS
  }
}
