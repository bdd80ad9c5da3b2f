import type { BatchDeps } from '../batching/batcher.ts'
import { LinkUnavailable } from './link.ts'

/** Maximum age of the cached state, ms. */
const STATE_MAX_AGE_MS = 250

/**
 * A state of this age is fetched anew by a request that does not wait for it, ms. So while requests keep coming none waits for
 * the state: those that waited would each wake up alone, and then sign and store alone.
 */
const REFRESH_FROM_MS = STATE_MAX_AGE_MS / 2

/** How often a request checks whether the state that another request fetches has arrived. */
const POLL_INTERVAL_MS = 5

/** The daemon's last answer; times are ms since the epoch. */
interface KnownState<State> {
  readonly answer: State | LinkUnavailable | undefined
  readonly at: number
  readonly askedAt: number
}

const UNKNOWN_STATE: KnownState<never> = { answer: undefined, at: 0, askedAt: 0 }

/** What keeping the state needs of the runtime. */
type Host = Pick<BatchDeps, 'now' | 'keepAlive'>

/** The daemon's state, or a part of it, fetched once for all concurrent requests. */
export class DaemonState<State> {
  readonly #fetch: () => Promise<State>
  readonly #host: Host
  readonly #timeoutMs: number
  #requestedSince: number | undefined
  #state: KnownState<State> | undefined

  /** @param timeoutMs timeout of a fetch */
  constructor(fetchState: () => Promise<State>, host: Host, timeoutMs: number) {
    this.#fetch = fetchState
    this.#host = host
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
    // Its failure is kept like any other, for the requests that follow.
    if (this.#age() >= REFRESH_FROM_MS && !this.#isRequesting()) this.fresh().catch(() => {})
    return answer
  }

  /** What was answered last, however long ago; undefined where that was a failure. */
  get last(): State | undefined {
    const answer = this.#state?.answer
    return answer instanceof LinkUnavailable ? undefined : answer
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

  /**
   * The state as of now. The request that asks is kept alive until it is there, even if it ends without waiting: the runtime
   * would cut the fetch off with it, and all others would wait for an answer that never comes.
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

  /** A failure is cached as well, so that a request does not wait for a frozen daemon twice. */
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
