/** What is counted over time. Labels come from fixed tables, so that their number is bounded. */
export type Series =
  | 'requests'
  /** By `<status> <code>`. */
  | 'errors'
  /** By the upper bound of the bucket, in milliseconds. */
  | 'first_delta'
  | 'duration'
  | 'prompt_tokens'
  | 'completion_tokens'
  /** Nano-EUR. */
  | 'cost'
  | 'failovers'

/** Upper bounds of the buckets for times, in milliseconds; one more bucket holds longer times. */
const BOUNDS_MS = [
  5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
  10_000, 15_000, 30_000, 60_000, 180_000, 600_000,
]

const BEYOND = 'beyond'

/** The label of the bucket for a time. */
export function bucketOf(milliseconds: number): string {
  return String(BOUNDS_MS.find((bound) => milliseconds <= bound) ?? BEYOND)
}

/**
 * A percentile of bucketed times, in milliseconds, interpolated linearly within its bucket. Null where nothing was counted.
 * @param fraction such as 0.95
 */
export function percentileOf(
  buckets: ReadonlyMap<string, number>,
  fraction: number,
): number | null {
  const total = [...buckets.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const wanted = total * fraction
  let below = 0
  let lower = 0
  for (const bound of BOUNDS_MS) {
    const count = buckets.get(String(bound)) ?? 0
    if (count > 0 && below + count >= wanted) {
      return Math.round(lower + ((wanted - below) / count) * (bound - lower))
    }
    below += count
    lower = bound
  }
  return lower
}
