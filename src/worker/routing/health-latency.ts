/** How quickly one route answers: an exponentially weighted mean of the times to its first delta. */
export interface Latency {
  /** Undefined until something was measured. */
  readonly ms: number | undefined
  /** True for the one caller that may try this route first because its latency is unknown or stale. */
  claimExploration(now: number): boolean
  /**
   * Records an answer.
   * @param firstDeltaMs undefined where the time to the first delta was not measured
   */
  answered(firstDeltaMs: number | undefined, now: number): void
}

/** The weight of the newest measurement: about the last ten matter. */
const NEWEST_WEIGHT = 0.2

/** After this time measurements are stale, ms, and the route may be explored again. */
const LATENCY_STALE_MS = 300_000

/** Minimum time between two explorations of the same route. */
const EXPLORATION_MS = 5_000

/** Creates the latency of a route that was not measured yet. */
export function createLatency(): Latency {
  let mean: number | undefined
  let answeredAt: number | undefined
  let exploredUntil = 0

  const isStale = (now: number): boolean =>
    answeredAt === undefined || now - answeredAt >= LATENCY_STALE_MS

  return {
    get ms() {
      return mean
    },
    claimExploration: (now) => {
      if (!isStale(now) || now < exploredUntil) return false
      exploredUntil = now + EXPLORATION_MS
      return true
    },
    answered: (firstDeltaMs, now) => {
      if (firstDeltaMs !== undefined) {
        const before = isStale(now) ? firstDeltaMs : (mean ?? firstDeltaMs)
        mean = before + NEWEST_WEIGHT * (firstDeltaMs - before)
      }
      answeredAt = now
    },
  }
}
