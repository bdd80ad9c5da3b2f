/**
 * Measures the time since something last happened. If the clock is set back, it starts again, so that nothing waits until
 * the clock reaches its former time.
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
