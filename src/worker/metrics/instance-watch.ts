const MAX_REMEMBERED = 10_000

/** Minimum time between two written reports about the same key, ms. */
const REPORT_PAUSE_MS = 60_000

/** A storage outage, whose report cannot be stored. */
export interface Outage {
  /** The id of its message, the same for every endpoint and every attempt. */
  readonly id: string
  /** When this instance first saw the outage, ms since the epoch. */
  readonly seenAt: number
  /** The endpoints that have confirmed the report. */
  readonly confirmed: Set<string>
}

/** What an instance of the worker remembers about its reports to the operator, for the lifetime of the instance. */
export class InstanceWatch {
  /** Distinguishes this instance's reports from those of others. */
  readonly id: string
  #outage: Outage | undefined
  #settlementFaults: number | undefined
  /** When a report was last written, by key; ms. */
  readonly #reportedAt = new Map<string, number>()

  constructor(id: string) {
    this.id = id
  }

  /** The report of the current storage outage; the first call of an outage creates it. */
  outage({ newId, now }: { readonly newId: () => string; readonly now: () => number }): Outage {
    this.#outage ??= { id: newId(), seenAt: now(), confirmed: new Set() }
    return this.#outage
  }

  /** Ends the outage once the storage answers again, so that the next one gets a new report. */
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
   * Whether a report about this key may be written now: at most one a minute. A later refusal then reports a limit that has
   * changed, or a report that could not be stored.
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
