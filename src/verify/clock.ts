/** How far apart the clocks of two honest parties may be. */
export const CLOCK_SKEW_MS = 120_000

/** Milliseconds since 1970 of a time that a schema has checked. */
export function milliseconds(timestamp: string): number {
  return Date.parse(timestamp)
}

/**
 * Every comparison with what is no number is false, so that nothing would ever be too early, expired or too old.
 * @throws TypeError when it is not, because that is the caller's mistake and not a fault of the evidence
 */
export function requireNumber(name: string, value: unknown): void {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new TypeError(`${name} must be a number`)
  }
}
