const MAX_REMEMBERED = 10_000

/** A report about a key is written again after this time at the earliest, ms. */
const REPORT_PAUSE_MS = 60_000

/** A storage outage, which is reported without being stored. */
export interface Outage {
  /** Of its message, the same for every endpoint and every attempt. */
  readonly id: string
  /** Ms. */
  readonly seenAt: number
  /** The endpoints that have it. */
  readonly told: Set<string>
}

/** What an instance of the worker remembers, for its lifetime, about its reports to the operator. */
export class InstanceWatch {
  /** Distinguishes this instance's reports from those of others. */
  readonly id: string
  #outage: Outage | undefined
  #settlementFaults: number | undefined
  /** When a report about each key was last written, ms. */
  readonly #reportedAt = new Map<string, number>()

  constructor(id: string) {
    this.id = id
  }

  /** The report of the storage outage that is under way, which may have begun just now. */
  outage({ newId, now }: { readonly newId: () => string; readonly now: () => number }): Outage {
    this.#outage ??= { id: newId(), seenAt: now(), told: new Set() }
    return this.#outage
  }

  /** The storage answers again: the next outage is another one. */
  endOutage(): void {
    this.#outage = undefined
  }

  /**
   * Whether other workers of the host counted settlement faults since the last call. Faults from before
   * the first call do not count: the instance that was watching at that time has reported them.
   */
  countedSince(settlementFaults: number): boolean {
    const before = this.#settlementFaults ?? settlementFaults
    this.#settlementFaults = settlementFaults
    return settlementFaults > before
  }

  /**
   * Whether what is reported about this key may be written now: at most once a minute, so that a limit that has changed, or a
   * report that could not be stored, is reported with a later refusal.
   * @param now ms
   */
  mayReport(key: string, now: number): boolean {
    const reportedAt = this.#reportedAt.get(key) ?? Number.NEGATIVE_INFINITY
    if (Math.abs(now - reportedAt) < REPORT_PAUSE_MS) return false
    if (this.#reportedAt.size >= MAX_REMEMBERED) this.#reportedAt.clear()
    this.#reportedAt.set(key, now)
    return true
  }
}
