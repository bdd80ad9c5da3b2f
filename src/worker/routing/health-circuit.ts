import type { ServiceConfig } from '../../protocol/config.ts'
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
  failed(now: number, failure: RouteFailure): void
}

/**
 * A claimed probe that has not started by then may be claimed again: its request may have ended before the attempt.
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

/** Spans also have a beginning, so that a clock that is set back cannot keep a circuit open forever. */
function covers(span: Span | undefined, now: number): boolean {
  return span !== undefined && now >= span.since && now < span.until
}

/** A closed circuit. It has no timer: time passes only through the `now` of the calls. */
export function createCircuit(breaker: ServiceConfig['breaker']): Circuit {
  let failures: number[] = []
  /** Open because of failures; ends with a probe that succeeds. */
  let cooldown: Span | undefined
  /** Open because the provider asked to wait; ends by itself. */
  let requestedPause: Span | undefined
  let probe: Span | undefined

  const errors = (now: number): number =>
    failures.filter((at) => at > now - breaker.window_ms && at <= now).length

  const state = (now: number): CircuitState => {
    if (covers(requestedPause, now) || covers(cooldown, now)) return 'open'
    return cooldown === undefined ? 'closed' : 'half_open'
  }

  /** A new span, never shorter than the one still running. */
  const spanOf = (now: number, ms: number, running: Span | undefined): Span => {
    const earlier = covers(running, now) ? (running?.until ?? now) : now
    return { since: now, until: Math.max(earlier, now + ms) }
  }

  return {
    state,
    errors,
    retryAt: (now) => {
      const ends = [
        cooldown?.until,
        covers(requestedPause, now) ? requestedPause?.until : undefined,
      ]
      const known = ends.filter((end) => end !== undefined)
      return known.length === 0 ? undefined : Math.max(...known)
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
      failures = []
      cooldown = undefined
      probe = undefined
    },
    failed: (now, { kind, retryAfterMs = 0 }) => {
      if (REQUEST_FAULTS.has(kind)) {
        probe = undefined
        return
      }
      const before = state(now)
      failures = [...failures, now].slice(-breaker.errors)
      const wanted = Math.min(Math.max(0, retryAfterMs), MAX_RETRY_AFTER_MS)
      if (wanted > 0) requestedPause = spanOf(now, wanted, requestedPause)
      if (before === 'half_open' || (cooldown === undefined && errors(now) >= breaker.errors)) {
        cooldown = spanOf(now, breaker.cooldown_ms, cooldown)
        probe = undefined
      }
    },
  }
}
