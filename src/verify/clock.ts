/** Maximum difference between the clocks of two honest parties. */
export const CLOCK_SKEW_MS = 120_000

/** Milliseconds since 1970 of a time that a schema has checked. */
export function milliseconds(timestamp: string): number {
  return Date.parse(timestamp)
}

/**
 * Comparisons with NaN or undefined are false, so nothing would ever be too early, expired or too old.
 * @throws TypeError when the value is not a number: an error of the caller, not of the evidence
 */
export function requireNumber(name: string, value: unknown): void {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new TypeError(`${name} must be a number`)
  }
}
