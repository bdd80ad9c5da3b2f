import { LinkUnavailable } from './link.ts'

/** Maximum age of the cached state, ms. */
const STATE_MAX_AGE_MS = 250

/** How often a request checks whether the state that another request fetches has arrived. */
const POLL_INTERVAL_MS = 5

/** The daemon's last answer; times are ms since the epoch. */
interface KnownState<State> {
  readonly answer: State | LinkUnavailable | undefined
  readonly at: number
  readonly askedAt: number
}

const UNKNOWN_STATE: KnownState<never> = { answer: undefined, at: 0, askedAt: 0 }

/** The daemon's state, or a part of it, fetched once for all concurrent requests. */
export class DaemonState<State> {
  readonly #fetch: () => Promise<State>
  readonly #now: () => number
  readonly #timeoutMs: number
  #requestedSince: number | undefined
  #state: KnownState<State> | undefined

  /** @param timeoutMs timeout of a fetch */
  constructor(fetchState: () => Promise<State>, now: () => number, timeoutMs: number) {
    this.#fetch = fetchState
    this.#now = now
    this.#timeoutMs = timeoutMs
  }

  /**
   * The state, at most a quarter of a second old. Concurrent requests share one fetch: separate ones would each open a
   * connection. The waiting requests poll, because in workerd one request cannot safely resolve a promise that another
   * request awaits.
   */
  async recent(): Promise<State> {
    while (!this.#isFresh() && this.#isRequesting()) await pause(POLL_INTERVAL_MS)
    const answer = this.#isFresh() ? this.#state?.answer : undefined
    if (answer === undefined) return this.fresh()
    if (answer instanceof LinkUnavailable) throw answer
    return answer
  }

  /**
   * The state as of `time` or later. One fetch serves all requests that came before it was sent; a failure serves
   * those that came before its result.
   */
  async readAfter(time: number): Promise<State> {
    for (;;) {
      const { answer, at, askedAt } = this.#state ?? UNKNOWN_STATE
      if (answer instanceof LinkUnavailable && at >= time) throw answer
      if (answer !== undefined && !(answer instanceof LinkUnavailable) && askedAt >= time) {
        return answer
      }
      if (!this.#isRequesting()) return this.fresh()
      await pause(POLL_INTERVAL_MS)
    }
  }

  async fresh(): Promise<State> {
    const askedAt = this.#now()
    this.#requestedSince = askedAt
    try {
      return this.#keep(await this.#fetch(), askedAt)
    } catch (error) {
      if (error instanceof LinkUnavailable) this.#keep(error, askedAt)
      throw error
    } finally {
      this.#requestedSince = undefined
    }
  }

  #isFresh(): boolean {
    const age = this.#now() - (this.#state?.at ?? Number.NEGATIVE_INFINITY)
    return age >= 0 && age < STATE_MAX_AGE_MS
  }

  #isRequesting(): boolean {
    const since = this.#now() - (this.#requestedSince ?? Number.NEGATIVE_INFINITY)
    return since >= 0 && since < this.#timeoutMs
  }

  /** A failure is cached as well, so that a request does not wait for a frozen daemon twice. */
  #keep<Answer extends State | LinkUnavailable>(answer: Answer, askedAt: number): Answer {
    this.#state = { answer, at: this.#now(), askedAt }
    return answer
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
