import type { ServiceConfig } from '../../protocol/config.ts'
import { createCircuit, type Circuit } from './health-circuit.ts'

/** Maximum number of customers per route; failures of any two of them already count against the route for all. */
const MAX_CUSTOMERS = 100

/** The own circuits of the customers whose requests failed on one route recently. */
export interface OwnCircuits {
  find(customer: string): Circuit | undefined
  /** The circuit of a customer who uses the route now; creates a closed one where there is none. */
  use(now: number, customer: string): Circuit
  drop(customer: string): void
  all(): readonly Circuit[]
  /** Drops circuits that were not used for longer than a failure counts. */
  forget(now: number): void
}

/** Starts without circuits. */
export function createOwnCircuits(breaker: ServiceConfig['breaker']): OwnCircuits {
  const owns = new Map<string, { readonly circuit: Circuit; readonly usedAt: number }>()
  /** Long enough for a cooldown and, as long again, a probe. */
  const keptMs = Math.max(breaker.window_ms, 2 * breaker.cooldown_ms)
  return {
    find: (customer) => owns.get(customer)?.circuit,
    use: (now, customer) => {
      const circuit = owns.get(customer)?.circuit ?? createCircuit(breaker)
      owns.delete(customer)
      owns.set(customer, { circuit, usedAt: now })
      const [oldest] = owns.keys()
      if (oldest !== undefined && owns.size > MAX_CUSTOMERS) owns.delete(oldest)
      return circuit
    },
    drop: (customer) => void owns.delete(customer),
    all: () => [...owns.values()].map(({ circuit }) => circuit),
    forget: (now) => {
      if (owns.size === 0) return
      for (const [customer, { usedAt }] of owns) {
        if (Math.abs(now - usedAt) >= keptMs) owns.delete(customer)
      }
    },
  }
}
