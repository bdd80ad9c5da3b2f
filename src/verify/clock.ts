/** How far apart the clocks of two honest parties may be. */
export const CLOCK_SKEW_MS = 120_000

/** Milliseconds since 1970 of a time that a schema has checked. */
export function milliseconds(timestamp: string): number {
  return Date.parse(timestamp)
}
