/**
 * Measures the time since something last happened. A clock that was set back starts it anew, so that nothing waits until
 * that clock has caught up.
 */
export class Stopwatch {
  readonly #now: () => number
  #since: number

  /** @param now ms */
  constructor(now: () => number) {
    this.#now = now
    this.#since = now()
  }

  restart(): void {
    this.#since = this.#now()
  }

  /** Ms since the start; never negative. */
  elapsed(): number {
    const ms = this.#now() - this.#since
    if (ms >= 0) return ms
    this.restart()
    return 0
  }
}
