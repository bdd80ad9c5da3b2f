/** The time that one attempt may take while other routes remain. */
export interface AttemptShare {
  readonly ms: number
  /** Whether silence for so long says something of the route, and not only of the caller's hurry. */
  readonly telling: boolean
}

/** A short answer may rightly take this long. */
const LEAST_MS = 5_000

/** A shorter silence is not held against a route: else a hurried caller could put it at rest for everybody. */
export const TELLING_MS = 4_000

/** The rest is for the next route, whatever was configured. */
const MOST_OF_WHAT_IS_LEFT = 0.8

/**
 * The share of an attempt whose answer is not streamed, so that one silent route cannot use up the whole budget:
 * half of the time left, but not under 5 s, or what the operator set; at most four fifths of what is left.
 */
export function attemptShare(leftMs: number, configuredMs: number | undefined): AttemptShare {
  const wanted = configuredMs ?? Math.max(leftMs / 2, LEAST_MS)
  const ms = Math.min(wanted, leftMs * MOST_OF_WHAT_IS_LEFT)
  return { ms, telling: ms >= Math.min(configuredMs ?? TELLING_MS, TELLING_MS) }
}
