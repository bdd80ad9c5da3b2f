import type { ServiceConfig } from '../../protocol/config.ts'

/** A failure that counts against a route. */
interface Counted {
  /** Ms. */
  readonly at: number
  /** The customer whose request failed. */
  readonly customer: string
  /** Whether the content of the customer's request may be the cause. */
  readonly mayBeContent: boolean
}

/** The latest failures of a route. */
export interface FailureWindow {
  add(failure: Counted): void
  /** The failures within the window. */
  recent(now: number): readonly Counted[]
  /**
   * Of these, the failures that incriminate the route itself: all of them if they come from two customers or more, else
   * those that no content causes.
   */
  against(now: number): readonly Counted[]
  /** Forgets the failures of a customer whom the route has answered since. */
  forgive(customer: string): void
  /** Forgets failures before the window. */
  forget(now: number): void
  clear(): void
}

/**
 * Makes an empty window. Of each kind (caused by content or not), it keeps as many failures as open a circuit, so that
 * neither kind displaces the other.
 */
export function createFailureWindow(breaker: ServiceConfig['breaker']): FailureWindow {
  let failures: readonly Counted[] = []

  const recent = (now: number) =>
    failures.filter(({ at }) => at > now - breaker.window_ms && at <= now)

  return {
    add: (failure) => {
      const ofKind = failures.filter(({ mayBeContent }) => mayBeContent === failure.mayBeContent)
      const dropped = ofKind.length < breaker.errors ? undefined : ofKind[0]
      failures = [...failures.filter((earlier) => earlier !== dropped), failure]
    },
    recent,
    against: (now) => {
      const counted = recent(now)
      const [first] = counted
      const isOfOne = counted.every(({ customer }) => customer === first?.customer)
      return isOfOne ? counted.filter(({ mayBeContent }) => !mayBeContent) : counted
    },
    forgive: (customer) => {
      failures = failures.filter((failure) => failure.customer !== customer)
    },
    forget: (now) => {
      if (failures.length > 0) failures = recent(now)
    },
    clear: () => {
      failures = []
    },
  }
}
