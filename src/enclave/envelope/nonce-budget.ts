/**
 * Whether a source may have one more report for a nonce of its own; if so, this also counts it. `now` in milliseconds.
 */
export type NonceBudget = (source: string, now: number) => boolean

export interface NonceLimits {
  /** Maximum reports for one source per window. */
  readonly perSource: number
  /** Maximum reports for all sources per window: what the platform's firmware can handle. */
  readonly inAll: number
  readonly windowMs: number
}

/** The share of the budget that is reserved for sources that have had nothing in the window. */
const RESERVED_FOR_NEW_SOURCES = 1 / 3

/**
 * At most `perSource` calls of one source and `inAll` of all in any window. The last third is reserved for sources
 * that have had nothing in the window, so that a few sources cannot use up the first report of all others.
 */
export function createNonceBudget({ perSource, inAll, windowMs }: NonceLimits): NonceBudget {
  const recent: { readonly source: string; readonly at: number }[] = []
  return (source, now) => {
    while (recent[0] !== undefined && recent[0].at <= now - windowMs) recent.shift()
    const own = recent.filter((call) => call.source === source).length
    const open = own === 0 ? inAll : Math.floor(inAll * (1 - RESERVED_FOR_NEW_SOURCES))
    if (own >= perSource || recent.length >= open) return false
    recent.push({ source, at: now })
    return true
  }
}
