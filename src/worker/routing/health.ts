import type { ServiceConfig } from '../../protocol/config.ts'
import type { FailureKind } from '../provider/failure.ts'
import type { Route } from '../provider/route.ts'
import type { CircuitState, RouteFailure } from './health-circuit.ts'
import { createRouteCircuits, type RouteCircuits } from './health-circuits.ts'
import { createLatency, type Latency } from './health-latency.ts'
import { preferByLatency } from './selection.ts'

/** The health of one route as `GET /admin/routes` shows it (docs/routing.md). */
export interface RouteStatus {
  readonly route: string
  readonly model_key: string
  readonly provider: string
  readonly region: string | null
  readonly state: CircuitState
  /** Counted failures within the window. */
  readonly errors: number
  /** The kind of the newest failure. */
  readonly last_failure: FailureKind | null
  /** RFC 3339; null while the circuit is closed. */
  readonly retry_at: string | null
  /** Smoothed time to the first delta, ms; null while unknown. */
  readonly latency_ms: number | null
}

/**
 * The health of routes, as observed by this isolate. Times are milliseconds since the epoch; `customer` is the customer
 * whose request it is.
 */
export interface RouteHealth {
  /** Sorts routes by the operator's selection, whatever the state of their circuits. */
  prefer(routes: readonly Route[], now: number): readonly Route[]
  /**
   * Moves attempts whose circuit is open for this customer to the end. A half-open route keeps its place for one caller at a
   * time, the probe; for others it comes after the healthy ones.
   */
  openCircuitsLast<Attempt extends Attempted>(
    attempts: readonly Attempt[],
    now: number,
    customer: string,
  ): readonly Attempt[]
  /** An attempt begins: a probe is now in flight. Optional; without it, the claim of a probe lapses sooner. */
  started(route: Route, now: number, customer: string): void
  /** The route answered; `firstDeltaMs` is undefined where the time to the first delta was not measured. */
  succeeded(route: Route, now: number, firstDeltaMs: number | undefined, customer: string): void
  failed(route: Route, now: number, failure: RouteFailure, customer: string): void
  /** The health of the given routes, or by default of those that were used. */
  snapshot(now: number, routes?: readonly Route[]): readonly RouteStatus[]
}

/** An attempt on a route. */
interface Attempted {
  readonly route: Route
}

interface Tracked {
  readonly route: Route
  readonly circuits: RouteCircuits
  readonly latency: Latency
  lastFailure: FailureKind | null
}

/**
 * Health of routes by route id, in memory. Selection by price does not need it: the catalogue has already sorted the
 * candidates of every selector.
 */
export function createRouteHealth(
  breaker: ServiceConfig['breaker'],
  selection: ServiceConfig['selection'],
): RouteHealth {
  const tracked = new Map<string, Tracked>()

  const find = (route: Route): Tracked => tracked.get(route.id) ?? newTracked(route, breaker)

  const track = (route: Route): Tracked => {
    const known = tracked.get(route.id)
    if (known !== undefined) return known
    const entry = newTracked(route, breaker)
    tracked.set(route.id, entry)
    return entry
  }

  const prefer: RouteHealth['prefer'] = (routes, now) =>
    selection === 'latency' && routes.length > 1 ? fastestFirst(routes.map(track), now) : routes

  return {
    prefer,
    openCircuitsLast: (attempts, now, customer) =>
      openCircuitsLast(attempts, tracked, now, customer),
    started: (route, now, customer) => tracked.get(route.id)?.circuits.started(now, customer),
    succeeded: (route, now, firstDeltaMs, customer) => {
      const { circuits, latency } = track(route)
      circuits.succeeded(now, customer)
      latency.answered(firstDeltaMs, now)
    },
    failed: (route, now, failure, customer) => {
      const entry = track(route)
      entry.circuits.failed(now, failure, customer)
      entry.lastFailure = failure.kind
    },
    snapshot: (now, routes) => {
      const entries = routes?.map(find) ?? [...tracked.values()]
      return entries.map((entry) => statusOf(entry, now))
    },
  }
}

function newTracked(route: Route, breaker: ServiceConfig['breaker']): Tracked {
  return {
    route,
    circuits: createRouteCircuits(breaker),
    latency: createLatency(),
    lastFailure: null,
  }
}

/** Fastest first, except that at most one route that is due for exploration is placed before them all. */
function fastestFirst(entries: readonly Tracked[], now: number): readonly Route[] {
  const explored = entries.find(
    ({ circuits, latency }) =>
      circuits.worst(now).state === 'closed' && latency.claimExploration(now),
  )
  const byLatency = preferByLatency(entries).map(({ route }) => route)
  if (!explored) return byLatency
  return [explored.route, ...byLatency.filter((route) => route !== explored.route)]
}

/** Sorts attempts by circuit state: closed, then half-open, then open by the time their circuits end; otherwise stable. */
function openCircuitsLast<Attempt extends Attempted>(
  attempts: readonly Attempt[],
  tracked: ReadonlyMap<string, Tracked>,
  now: number,
  customer: string,
): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  const healthy: Attempt[] = []
  const halfOpen: Attempt[] = []
  const open: { attempt: Attempt; until: number }[] = []
  for (const attempt of attempts) {
    const circuits = tracked.get(attempt.route.id)?.circuits
    const state = circuits?.state(now, customer) ?? 'closed'
    if (state === 'closed') healthy.push(attempt)
    else if (state === 'open')
      open.push({ attempt, until: circuits?.retryAt(now, customer) ?? now })
    // Only the first attempt is certain to run, so a probe is claimed only for it.
    else if (healthy.length === 0 && circuits?.claimProbe(now, customer)) healthy.push(attempt)
    else halfOpen.push(attempt)
  }
  if (healthy.length === attempts.length) return attempts
  const soonest = open.toSorted((a, b) => a.until - b.until).map(({ attempt }) => attempt)
  return [...healthy, ...halfOpen, ...soonest]
}

function statusOf({ route, circuits, latency, lastFailure }: Tracked, now: number): RouteStatus {
  const { state, errors, retryAt } = circuits.worst(now)
  return {
    route: route.id,
    model_key: route.modelKey,
    provider: route.provider.name,
    region: route.region ?? null,
    state,
    errors,
    last_failure: lastFailure,
    retry_at: retryAt === undefined ? null : new Date(retryAt).toISOString(),
    latency_ms: latency.ms === undefined ? null : Math.round(latency.ms),
  }
}
