import type { ServiceConfig } from '../../protocol/config.ts'
import type { FailureKind } from '../provider/failure.ts'
import { MAX_RETRY_AFTER_MS } from '../provider/retry-after.ts'

/**
 * The circuit breaker of one route. Closed: in service. Open: resting until a time. Half-open: that time has
 * come, and one caller at a time may find out whether the route is back.
 */
export type CircuitState = 'closed' | 'open' | 'half_open'

/** What a failed attempt says about its route. */
export interface RouteFailure {
  readonly kind: FailureKind
  /** How long the provider asked to be left alone. */
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
  failed(now: number, failure: RouteFailure): void
}

/** A claimed probe that is not begun by then is another caller's: its request may have ended before its turn. */
const UNUSED_CLAIM_MS = 1_000

/** What says nothing about the route: it answered, and the request was at fault. */
const BLAMELESS: ReadonlySet<FailureKind> = new Set([
  'rejected',
  'context_length',
  'content_policy',
  'file_rejected',
  'file_too_large',
  'file_type_rejected',
])

/** A provider's plain statement that it will not serve us now; there is nothing to count. */
const STATEMENTS: ReadonlySet<FailureKind> = new Set(['rate_limited', 'unauthorized_upstream'])

interface Span {
  readonly since: number
  readonly until: number
}

/** A clock that was set back must keep nothing waiting for ever, so a span has a beginning too. */
function covers(span: Span | undefined, now: number): boolean {
  return span !== undefined && now >= span.since && now < span.until
}

/** A closed circuit. Time passes only by the calls' `now`. */
export function createCircuit(breaker: ServiceConfig['breaker']): Circuit {
  let failures: number[] = []
  let rest: Span | undefined
  let probe: Span | undefined

  const errors = (now: number): number =>
    failures.filter((at) => at > now - breaker.window_ms && at <= now).length

  const state = (now: number): CircuitState =>
    rest === undefined ? 'closed' : covers(rest, now) ? 'open' : 'half_open'

  const restFor = (now: number, ms: number): void => {
    const earlier = covers(rest, now) ? (rest?.until ?? now) : now
    rest = { since: now, until: Math.max(earlier, now + ms) }
    probe = undefined
  }

  return {
    state,
    errors,
    get retryAt() {
      return rest?.until
    },
    claimProbe: (now) => {
      if (state(now) !== 'half_open' || covers(probe, now)) return false
      probe = { since: now, until: now + UNUSED_CLAIM_MS }
      return true
    },
    started: (now) => {
      if (state(now) === 'half_open') probe = { since: now, until: now + breaker.cooldown_ms }
    },
    succeeded: (now) => {
      // An answer to a request from before the rest began is no news.
      if (state(now) !== 'half_open') return
      failures = []
      rest = undefined
      probe = undefined
    },
    failed: (now, { kind, retryAfterMs = 0 }) => {
      if (BLAMELESS.has(kind)) {
        probe = undefined
        return
      }
      const asked = Math.min(Math.max(0, retryAfterMs), MAX_RETRY_AFTER_MS)
      const before = state(now)
      failures = [...failures, now].slice(-breaker.errors)
      if (before === 'open') return restFor(now, asked)
      const trips = before === 'half_open' || STATEMENTS.has(kind) || errors(now) >= breaker.errors
      if (trips) restFor(now, Math.max(breaker.cooldown_ms, asked))
      else if (asked > 0) restFor(now, asked)
    },
  }
}
