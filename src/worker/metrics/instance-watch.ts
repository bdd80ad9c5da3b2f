const MAX_REMEMBERED = 10_000

/** What an instance of the worker remembers, for its lifetime, about its reports to the operator. */
export class InstanceWatch {
  /** Distinguishes this instance's reports from those of others. */
  readonly id: string
  #outageTold = false
  readonly #seen = new Set<string>()

  constructor(id: string) {
    this.id = id
  }

  /** Marks a storage outage as reported. @returns whether it had not been reported yet */
  beginOutage(): boolean {
    const first = !this.#outageTold
    this.#outageTold = true
    return first
  }

  /** The storage answers again, or the outage could not be reported: the next outage is reported again. */
  endOutage(): void {
    this.#outageTold = false
  }

  /** Whether the key is seen for the first time; only recent keys are remembered. */
  isFirst(key: string): boolean {
    if (this.#seen.has(key)) return false
    if (this.#seen.size >= MAX_REMEMBERED) this.#seen.clear()
    this.#seen.add(key)
    return true
  }
}
