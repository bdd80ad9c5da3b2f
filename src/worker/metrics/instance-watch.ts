const MAX_REMEMBERED = 10_000

/** What an instance of the worker remembers for its reports to the operator, from its start to its end. */
export class InstanceWatch {
  /** Tells this instance's view of things from that of others. */
  readonly id: string
  #outageTold = false
  readonly #seen = new Set<string>()

  constructor(id: string) {
    this.id = id
  }

  /** Whether the storage's outage has not been told yet; from now on it counts as told. */
  beginOutage(): boolean {
    const first = !this.#outageTold
    this.#outageTold = true
    return first
  }

  /** The storage answers, or the outage could not be told: the next one is told again. */
  endOutage(): void {
    this.#outageTold = false
  }

  /** Whether this is seen for the first time, as far as is remembered. */
  isFirst(key: string): boolean {
    if (this.#seen.has(key)) return false
    if (this.#seen.size >= MAX_REMEMBERED) this.#seen.clear()
    this.#seen.add(key)
    return true
  }
}
