import type { ServiceConfig } from '../../protocol/config.ts'
import {
  createCircuit,
  latest,
  REQUEST_FAULTS,
  type Circuit,
  type CircuitState,
  type RouteFailure,
} from './health-circuit.ts'
import { createOwnCircuits } from './own-circuits.ts'

/**
 * The circuits of one route: a common one, and one for each customer whose requests failed recently. The content of a
 * customer's requests may be why a provider fails: such failures open the customer's own circuit, and the common one only
 * once a second customer has some, too.
 */
export interface RouteCircuits {
  /** The state of the route for this customer: the worse of the common and the customer's own circuit. */
  state(now: number, customer: string): CircuitState
  retryAt(now: number, customer: string): number | undefined
  claimProbe(now: number, customer: string): boolean
  started(now: number, customer: string): void
  succeeded(now: number, customer: string): void
  failed(now: number, failure: RouteFailure, customer: string): void
  /** The worst state that any customer has. */
  worst(now: number): RouteCircuit
}

/** The state of a route. */
interface RouteCircuit {
  readonly state: CircuitState
  /** Counted failures within the window. */
  readonly errors: number
  readonly retryAt: number | undefined
}

/** Creates closed circuits. A customer's own circuit is dropped with the first call after its retention time. */
export function createRouteCircuits(breaker: ServiceConfig['breaker']): RouteCircuits {
  const common = createCircuit(breaker)
  const owns = createOwnCircuits(breaker)
  /** Created once, because every request uses it. */
  const commonOnly: readonly Circuit[] = [common]

  const forget = (now: number): void => {
    common.failures.forget(now)
    owns.forget(now)
  }

  const ownOf = (now: number, customer: string): Circuit | undefined => {
    forget(now)
    return owns.find(customer)
  }

  /** The circuits that apply to a customer. */
  const of = (now: number, customer: string): readonly Circuit[] => {
    const own = ownOf(now, customer)
    return own === undefined ? commonOnly : [common, own]
  }

  return {
    state: (now, customer) => worstState(of(now, customer), now),
    retryAt: (now, customer) => lastRetry(of(now, customer), now),
    claimProbe: (now, customer) =>
      of(now, customer)
        .filter((circuit) => circuit.state(now) === 'half_open')
        .toReversed()
        .every((circuit) => circuit.claimProbe(now)),
    started: (now, customer) => {
      const own = ownOf(now, customer)
      common.started(now)
      if (own !== undefined) owns.use(now, customer).started(now)
    },
    succeeded: (now, customer) => {
      const own = ownOf(now, customer)
      if (own?.state(now) === 'half_open') {
        common.failures.forgive(customer)
        owns.drop(customer)
      }
      common.succeeded(now)
    },
    failed: (now, failure, customer) => {
      const own = ownOf(now, customer)
      const stays = common.failed(now, failure, customer)
      if (REQUEST_FAULTS.has(failure.kind) && own === undefined) return
      const used = owns.use(now, customer)
      used.failed(now, { kind: failure.kind }, customer)
      // The failed probe incriminates only the customer's requests, so this customer rests, and another customer gets the
      // next probe.
      if (stays) used.rest(now)
    },
    worst: (now) => {
      forget(now)
      const circuits = [common, ...owns.all()]
      const errors = common.errors(now)
      return { state: worstState(circuits, now), errors, retryAt: lastRetry(circuits, now) }
    },
  }
}

const FROM_WORST: readonly CircuitState[] = ['open', 'half_open', 'closed']

function worstState(circuits: readonly Circuit[], now: number): CircuitState {
  const [first] = circuits
  if (first !== undefined && circuits.length === 1) return first.state(now)
  const states = new Set(circuits.map((circuit) => circuit.state(now)))
  return FROM_WORST.find((state) => states.has(state)) ?? 'closed'
}

function lastRetry(circuits: readonly Circuit[], now: number): number | undefined {
  return latest(circuits.map((circuit) => circuit.retryAt(now)))
}
