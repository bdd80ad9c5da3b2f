import type { ServiceConfig } from '../../protocol/config.ts'

/**
 * The circuit breaker of one route. Closed: in service. Open: resting until a time. Half-open: that time has
 * come, and one caller at a time may find out whether the route is back.
 */
export type CircuitState = 'closed' | 'open' | 'half_open'

export interface CircuitFailure {
  readonly kind: string
  readonly retryAfterMs?: number | undefined
}

export interface Circuit {
  state(now: number): CircuitState
  /** Counted failures within the window. */
  errors(now: number): number
  /** When the rest ends; undefined while closed. */
  readonly retryAt: number | undefined
  /** True for the one caller that becomes the probe of a half-open circuit. */
  claimProbe(now: number): boolean
  started(now: number): void
  succeeded(now: number): void
  failed(now: number, failure: CircuitFailure): void
}

/** A provider's Retry-After never takes a route away for longer than this. */
export const LONGEST_ASKED_REST_MS = 60_000

/** A claimed probe that is not begun by then is another caller's: its request may have ended before its turn. */
const UNUSED_CLAIM_MS = 1_000

/** What says nothing about the route: it answered, and the request was at fault. */
const BLAMELESS: ReadonlySet<string> = new Set([
  'rejected',
  'context_length',
  'content_policy',
  'file_rejected',
  'file_too_large',
  'file_type',
])

/** A provider's plain statement that it will not serve us now; there is nothing to count. */
const STATEMENTS: ReadonlySet<string> = new Set(['rate_limited', 'unauthorized_upstream'])

/** A closed circuit. Time passes only by the calls' `now`. */
export function createCircuit(breaker: ServiceConfig['breaker']): Circuit {
  let failures: number[] = []
  let rest: { since: number; until: number } | undefined
  let probeUntil = 0

  const errors = (now: number): number =>
    failures.filter((at) => at > now - breaker.window_ms && at <= now).length

  /** A clock that was set back must not keep a route resting for ever. */
  const isResting = (now: number): boolean =>
    rest !== undefined && now >= rest.since && now < rest.until

  const state = (now: number): CircuitState =>
    rest === undefined ? 'closed' : isResting(now) ? 'open' : 'half_open'

  const restFor = (now: number, ms: number): void => {
    const until = isResting(now) ? Math.max(rest?.until ?? 0, now + ms) : now + ms
    rest = { since: now, until }
    probeUntil = 0
  }

  return {
    state,
    errors,
    get retryAt() {
      return rest?.until
    },
    claimProbe: (now) => {
      if (state(now) !== 'half_open' || now < probeUntil) return false
      probeUntil = now + UNUSED_CLAIM_MS
      return true
    },
    started: (now) => {
      if (state(now) === 'half_open') probeUntil = now + breaker.cooldown_ms
    },
    succeeded: (now) => {
      // An answer to a request from before the rest began is no news.
      if (state(now) !== 'half_open') return
      failures = []
      rest = undefined
    },
    failed: (now, { kind, retryAfterMs = 0 }) => {
      if (BLAMELESS.has(kind)) {
        probeUntil = 0
        return
      }
      const asked = Math.min(Math.max(0, retryAfterMs), LONGEST_ASKED_REST_MS)
      const before = state(now)
      failures = [...failures, now].slice(-breaker.errors)
      if (before === 'open') return restFor(now, asked)
      const trips = before === 'half_open' || STATEMENTS.has(kind) || errors(now) >= breaker.errors
      if (trips) restFor(now, Math.max(breaker.cooldown_ms, asked))
      else if (asked > 0) restFor(now, asked)
    },
  }
}
