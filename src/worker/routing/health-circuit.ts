import type { ServiceConfig } from '../../protocol/config.ts'
import { createFailureWindow, type FailureWindow } from './failure-window.ts'
import type { FailureKind } from '../provider/failure.ts'
import { MAX_RETRY_AFTER_MS } from '../provider/retry-after.ts'

/**
 * The state of a route's circuit breaker. Closed: in service. Open: not used, because of its failures or because the
 * provider asked to wait. Half-open: the cooldown after failures is over, and one request at a time may probe the
 * route.
 */
export type CircuitState = 'closed' | 'open' | 'half_open'

/** A failed attempt as the circuit breaker needs it. */
export interface RouteFailure {
  readonly kind: FailureKind
  /** The provider's `Retry-After`. */
  readonly retryAfterMs?: number | undefined
  /**
   * Whether the content of the customer's request may be the cause; such failures count against the route once a second
   * customer has some.
   */
  readonly mayBeContent?: boolean | undefined
}

export interface Circuit {
  state(now: number): CircuitState
  /** Counted failures within the window. */
  errors(now: number): number
  /** When the circuit stops being open; undefined while closed. */
  retryAt(now: number): number | undefined
  /** True for the one caller that becomes the probe of a half-open circuit. */
  claimProbe(now: number): boolean
  started(now: number): void
  succeeded(now: number): void
  /** @returns whether the circuit was half-open and still is: the failed probe did not show that the route is at fault */
  failed(now: number, failure: RouteFailure, customer: string): boolean
  /** Opens the circuit for a cooldown. */
  rest(now: number): void
  readonly failures: Pick<FailureWindow, 'forgive' | 'forget'>
}

/**
 * After this time, a claimed probe that has not started can be claimed again, ms: its request may have ended before the
 * attempt.
 */
const UNUSED_CLAIM_MS = 1_000

/** Failures that the request caused. The route answered, so they do not count against it. */
export const REQUEST_FAULTS: ReadonlySet<FailureKind> = new Set([
  'rejected',
  'context_length',
  'content_policy',
  'file_rejected',
  'file_too_large',
  'file_type_rejected',
])

interface Span {
  readonly since: number
  readonly until: number
}

/**
 * Whether a time lies in a span. Spans have a beginning, so that a clock that is set back cannot keep a circuit open
 * forever.
 */
function covers(span: Span | undefined, now: number): boolean {
  return span !== undefined && now >= span.since && now < span.until
}

/** A new span; it does not end before the running one. */
function spanOf(now: number, ms: number, running: Span | undefined): Span {
  const earlier = covers(running, now) ? (running?.until ?? now) : now
  return { since: now, until: Math.max(earlier, now + ms) }
}

/** The latest of these times. */
export function latest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** Creates a closed circuit. It has no timer: only the `now` of each call advances its time. */
export function createCircuit(breaker: ServiceConfig['breaker']): Circuit {
  const failures = createFailureWindow(breaker)
  /** Open because of failures; a successful probe ends it. */
  let cooldown: Span | undefined
  /** Open because the provider asked to wait; passes by itself. */
  let requestedPause: Span | undefined
  let probe: Span | undefined

  const state = (now: number): CircuitState => {
    if (covers(requestedPause, now) || covers(cooldown, now)) return 'open'
    return cooldown === undefined ? 'closed' : 'half_open'
  }

  const rest = (now: number): void => {
    cooldown = spanOf(now, breaker.cooldown_ms, cooldown)
    probe = undefined
  }

  return {
    state,
    errors: (now) => Math.min(failures.recent(now).length, breaker.errors),
    retryAt: (now) => {
      const pauseEnds = covers(requestedPause, now) ? requestedPause?.until : undefined
      return latest([cooldown?.until, pauseEnds])
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
      // A success while open belongs to a request sent before; it proves nothing about the route now.
      if (state(now) !== 'half_open') return
      failures.clear()
      cooldown = undefined
      probe = undefined
    },
    failed: (now, { kind, retryAfterMs = 0, mayBeContent = false }, customer) => {
      if (REQUEST_FAULTS.has(kind)) {
        probe = undefined
        return false
      }
      const before = state(now)
      const failure = { at: now, customer, mayBeContent }
      failures.add(failure)
      const wanted = Math.min(Math.max(0, retryAfterMs), MAX_RETRY_AFTER_MS)
      if (wanted > 0) requestedPause = spanOf(now, wanted, requestedPause)
      const evidence = failures.against(now)
      if (before !== 'half_open') {
        if (cooldown === undefined && evidence.length >= breaker.errors) rest(now)
        return false
      }
      const isConclusive = evidence.includes(failure)
      if (isConclusive) rest(now)
      else probe = undefined
      return !isConclusive
    },
    rest,
    failures,
  }
}
