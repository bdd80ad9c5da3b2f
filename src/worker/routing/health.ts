import type { ServiceConfig } from '../../protocol/config.ts'
import type { FailureKind } from '../provider/failure.ts'
import type { Route } from '../provider/route.ts'
import {
  createCircuit,
  type Circuit,
  type CircuitState,
  type RouteFailure,
} from './health-circuit.ts'
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
  /** Smoothed time to the first delta; null while unknown. */
  readonly latency_ms: number | null
}

/** The health of routes, as observed by this isolate. Times are milliseconds since the epoch. */
export interface RouteHealth {
  /** The same routes in the order of the operator's selection, whatever their circuits' state. */
  prefer(routes: readonly Route[], now: number): readonly Route[]
  /**
   * The same attempts, those whose circuit is open moved to the end. A half-open route keeps its place for one caller
   * at a time, the probe; for others it comes after the healthy ones.
   */
  openCircuitsLast<Attempt extends Attempted>(
    attempts: readonly Attempt[],
    now: number,
  ): readonly Attempt[]
  /** An attempt begins: a probe is now in flight. Optional; without it the claim of a probe lapses sooner. */
  started(route: Route, now: number): void
  /** The route answered; `firstDeltaMs` is undefined where nothing was timed. */
  succeeded(route: Route, now: number, firstDeltaMs: number | undefined): void
  failed(route: Route, now: number, failure: RouteFailure): void
  /** The health of the given routes; without any, of those that were used. */
  snapshot(now: number, routes?: readonly Route[]): readonly RouteStatus[]
}

/** An attempt on a route. */
interface Attempted {
  readonly route: Route
}

interface Tracked {
  readonly route: Route
  readonly circuit: Circuit
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
    const entry = find(route)
    tracked.set(route.id, entry)
    return entry
  }

  const prefer: RouteHealth['prefer'] = (routes, now) =>
    selection === 'latency' && routes.length > 1 ? fastestFirst(routes.map(track), now) : routes

  return {
    prefer,
    openCircuitsLast: (attempts, now) => openCircuitsLast(attempts, tracked, now),
    started: (route, now) => tracked.get(route.id)?.circuit.started(now),
    succeeded: (route, now, firstDeltaMs) => {
      const { circuit, latency } = track(route)
      circuit.succeeded(now)
      latency.answered(firstDeltaMs, now)
    },
    failed: (route, now, failure) => {
      const entry = track(route)
      entry.circuit.failed(now, failure)
      entry.lastFailure = failure.kind
    },
    snapshot: (now, routes) => {
      const entries = routes?.map(find) ?? [...tracked.values()]
      return entries.map((entry) => statusOf(entry, now))
    },
  }
}

function newTracked(route: Route, breaker: ServiceConfig['breaker']): Tracked {
  return { route, circuit: createCircuit(breaker), latency: createLatency(), lastFailure: null }
}

/** Fastest first, except that at most one route that is due for exploration comes before them all. */
function fastestFirst(entries: readonly Tracked[], now: number): readonly Route[] {
  const explored = entries.find(
    ({ circuit, latency }) => circuit.state(now) === 'closed' && latency.claimExploration(now),
  )
  const byLatency = preferByLatency(entries).map(({ route }) => route)
  if (!explored) return byLatency
  return [explored.route, ...byLatency.filter((route) => route !== explored.route)]
}

/** Circuits take precedence over preference: closed, then half-open, then open by the time they end. */
function openCircuitsLast<Attempt extends Attempted>(
  attempts: readonly Attempt[],
  tracked: ReadonlyMap<string, Tracked>,
  now: number,
): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  const healthy: Attempt[] = []
  const halfOpen: Attempt[] = []
  const open: { attempt: Attempt; until: number }[] = []
  for (const attempt of attempts) {
    const circuit = tracked.get(attempt.route.id)?.circuit
    const state = circuit?.state(now) ?? 'closed'
    if (state === 'closed') healthy.push(attempt)
    else if (state === 'open') open.push({ attempt, until: circuit?.retryAt(now) ?? now })
    // Only the first attempt is certain to run, so a probe is claimed only for it.
    else if (healthy.length === 0 && circuit?.claimProbe(now)) healthy.push(attempt)
    else halfOpen.push(attempt)
  }
  if (healthy.length === attempts.length) return attempts
  const soonest = open.toSorted((a, b) => a.until - b.until).map(({ attempt }) => attempt)
  return [...healthy, ...halfOpen, ...soonest]
}

function statusOf({ route, circuit, latency, lastFailure }: Tracked, now: number): RouteStatus {
  const retryAt = circuit.retryAt(now)
  return {
    route: route.id,
    model_key: route.modelKey,
    provider: route.provider.name,
    region: route.region ?? null,
    state: circuit.state(now),
    errors: circuit.errors(now),
    last_failure: lastFailure,
    retry_at: retryAt === undefined ? null : new Date(retryAt).toISOString(),
    latency_ms: latency.ms === undefined ? null : Math.round(latency.ms),
  }
}
