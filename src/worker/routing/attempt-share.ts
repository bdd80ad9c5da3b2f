/** The time that one attempt may take while other routes remain. */
export interface AttemptShare {
  /** Timeout of the attempt, ms. */
  readonly ms: number
  /** Whether a timeout counts as a failure of the route. False when the caller's short deadline caused it. */
  readonly conclusive: boolean
}

/** Minimum default timeout of an attempt: healthy routes need up to this long for a short answer. */
const MIN_ATTEMPT_MS = 5_000

/**
 * A shorter timeout does not count as a failure of the route, not even for the same customer: a healthy route may need as
 * long for a short answer.
 */
export const CONCLUSIVE_MS = 4_000

/** Maximum share of the remaining time for one attempt, whatever is configured: the next route needs the rest. */
const MAX_SHARE_OF_REMAINING = 0.8

/**
 * The timeout of an attempt whose answer is not streamed, so that one unresponsive route cannot use up the request's whole
 * time: the configured value, else half of the time left but at least 5 s; never more than four fifths of the time left.
 */
export function attemptShare(leftMs: number, configuredMs: number | undefined): AttemptShare {
  const wanted = configuredMs ?? Math.max(leftMs / 2, MIN_ATTEMPT_MS)
  const ms = Math.min(wanted, leftMs * MAX_SHARE_OF_REMAINING)
  return { ms, conclusive: ms >= Math.min(configuredMs ?? CONCLUSIVE_MS, CONCLUSIVE_MS) }
}
