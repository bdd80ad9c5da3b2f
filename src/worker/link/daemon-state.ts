import type { BatchDeps } from '../batching/batcher.ts'
import { LinkUnavailable } from './link.ts'

/** Maximum age of the cached state, ms. */
const STATE_MAX_AGE_MS = 250

/**
 * From this age on, a request that uses the cached state also starts a refresh, ms, without waiting for it. So while
 * requests keep coming, none waits for the state: requests that waited would wake up separately, and then sign and store
 * separately.
 */
const REFRESH_FROM_MS = STATE_MAX_AGE_MS / 2

/** How often a waiting request checks whether the state that another request fetches has arrived, ms. */
const POLL_INTERVAL_MS = 5

/** The daemon's last answer; times are ms since the epoch. */
interface KnownState<State> {
  readonly answer: State | LinkUnavailable | undefined
  readonly at: number
  readonly askedAt: number
}

const UNKNOWN_STATE: KnownState<never> = { answer: undefined, at: 0, askedAt: 0 }

/** What caching the state needs from the runtime. */
type Host = Pick<BatchDeps, 'now' | 'keepAlive'>

/** The daemon's state, or a part of it, cached, and fetched once for all concurrent requests. */
export class DaemonState<State> {
  readonly #fetch: () => Promise<State>
  readonly #host: Host
  readonly #timeoutMs: number
  #requestedSince: number | undefined
  #state: KnownState<State> | undefined

  /** @param timeoutMs timeout of a fetch, ms */
  constructor(fetchState: () => Promise<State>, host: Host, timeoutMs: number) {
    this.#fetch = fetchState
    this.#host = host
    this.#timeoutMs = timeoutMs
  }

  /**
   * The state, at most a quarter of a second old. Concurrent requests share one fetch: separate ones would each open a
   * connection. The waiting requests poll, because in workerd one request cannot safely resolve a promise that another
   * request awaits.
   * @throws LinkUnavailable when the daemon does not answer
   */
  async recent(): Promise<State> {
    while (!this.#isFresh() && this.#isRequesting()) await pause(POLL_INTERVAL_MS)
    const answer = this.#isFresh() ? this.#state?.answer : undefined
    if (answer === undefined) return this.fresh()
    if (answer instanceof LinkUnavailable) throw answer
    // A failure of the refresh is cached like any other, for the next requests.
    if (this.#age() >= REFRESH_FROM_MS && !this.#isRequesting()) this.fresh().catch(() => {})
    return answer
  }

  /** The last answer, however old; undefined where that was a failure. */
  get last(): State | undefined {
    const answer = this.#state?.answer
    return answer instanceof LinkUnavailable ? undefined : answer
  }

  /**
   * The state as of `time` (ms since the epoch) or later. One fetch serves all requests that came before it was sent; a
   * failure serves those that came before its result.
   * @throws LinkUnavailable when the daemon does not answer
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

  /**
   * Fetches the state now. The request is kept alive until the answer arrives, even if it ends without waiting: the runtime
   * would otherwise cancel the fetch with it, and all other requests would wait for an answer that never comes.
   * @throws LinkUnavailable when the daemon does not answer
   */
  fresh(): Promise<State> {
    const state = this.#ask()
    this.#host.keepAlive(Promise.allSettled([state]))
    return state
  }

  async #ask(): Promise<State> {
    const askedAt = this.#host.now()
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
    const age = this.#age()
    return age >= 0 && age < STATE_MAX_AGE_MS
  }

  #age(): number {
    return this.#host.now() - (this.#state?.at ?? Number.NEGATIVE_INFINITY)
  }

  #isRequesting(): boolean {
    const since = this.#host.now() - (this.#requestedSince ?? Number.NEGATIVE_INFINITY)
    return since >= 0 && since < this.#timeoutMs
  }

  /** Caches an answer. A failure is cached as well, so that a request does not wait for a frozen daemon twice. */
  #keep<Answer extends State | LinkUnavailable>(answer: Answer, askedAt: number): Answer {
    this.#state = { answer, at: this.#host.now(), askedAt }
    return answer
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
