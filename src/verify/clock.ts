/** By how much the clocks of two honest parties may differ, ms. */
export const PARTIES_DIFFER_MS = 120_000

/** Converts a timestamp that a schema has checked to milliseconds since 1970. */
export function milliseconds(timestamp: string): number {
  return Date.parse(timestamp)
}

/**
 * Requires a number: comparisons with NaN or undefined are false, so without this nothing would ever be too early,
 * expired or too old.
 * @throws TypeError when the value is not a number: an error of the caller, not of the evidence
 */
export function requireNumber(name: string, value: unknown): void {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new TypeError(`${name} must be a number`)
  }
}
