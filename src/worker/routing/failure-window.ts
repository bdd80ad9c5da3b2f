import type { ServiceConfig } from '../../protocol/config.ts'

/** A failure that counts against a route. */
interface Counted {
  /** Ms. */
  readonly at: number
  /** Whose request it was. */
  readonly customer: string
  /** Whether what the customer sent may be why. */
  readonly mayBeContent: boolean
}

/** The latest failures of a route. */
export interface FailureWindow {
  add(failure: Counted): void
  /** Those within the window. */
  recent(now: number): readonly Counted[]
  /**
   * Of these, those that show that the route itself fails: all once they are of two customers, else those that no content
   * causes.
   */
  against(now: number): readonly Counted[]
  /** Forgets those of a customer whom the route has answered since. */
  forgive(customer: string): void
  /** Forgets those before the window. */
  forget(now: number): void
  clear(): void
}

/** No failures yet. As many of either kind are kept as put a route to rest, so that none hides the other kind. */
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
