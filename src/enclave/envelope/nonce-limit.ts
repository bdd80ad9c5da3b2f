/** Says whether one more call is within the limit, and counts it if so. */
export type Limit = (now: number) => boolean

/** At most `calls` in any window of `windowMs` milliseconds. */
export function createLimit(calls: number, windowMs: number): Limit {
  const recent: number[] = []
  return (now) => {
    while (recent[0] !== undefined && recent[0] <= now - windowMs) recent.shift()
    if (recent.length >= calls) return false
    recent.push(now)
    return true
  }
}
