/** How quickly one route answers: an exponentially weighted mean of the times to its first delta. */
export interface Latency {
  /** Undefined until something was measured. */
  readonly ms: number | undefined
  /** True for the one caller that goes first to a route whose latency is unknown or long out of date. */
  claimExploration(now: number): boolean
  /** An answer; undefined where its first delta was not timed. */
  answered(firstDeltaMs: number | undefined, now: number): void
}

/** The weight of the newest measurement: about the last ten decide. */
const NEWEST_WEIGHT = 0.2

/** After this the route is worth another look, and what it did before no longer counts. */
const LATENCY_STALE_MS = 300_000

/** Until an exploration has had its turn, no other caller explores the same route. */
const EXPLORATION_MS = 5_000

/** A route of unknown latency. */
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
