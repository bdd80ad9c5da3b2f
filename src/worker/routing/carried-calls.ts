import type { Link, LinkUnavailable, ThreadWatch } from '../link/link.ts'
import type { Failure } from '../provider/failure.ts'
import { MAX_RETRY_AFTER_MS } from '../provider/retry-after.ts'
import { isCarried, type Route } from '../provider/route.ts'

/** What this class needs from the link. */
type Daemon = Pick<Link, 'watchThread'> & { state(): Promise<unknown> }

/** A lost daemon thread that carried a call. */
export interface LostThread {
  readonly error: LinkUnavailable
  /** The failure that counts against the route; undefined where the loss does not incriminate it. */
  readonly failure: Failure | undefined
}

/** A call of a route from its beginning to the end of its answer. */
export interface CarriedCall {
  /**
   * To be called when a call broke off or timed out without an answer. Undefined: the daemon thread that carried it still
   * responds, or no thread carried it, so the provider caused the failure.
   */
  lostThread(): Promise<LostThread | undefined>
  /**
   * Waits until the daemon responds again.
   * @throws LinkUnavailable when it takes too long
   */
  daemonBack(pause: (ms: number) => Promise<void>): Promise<void>
  end(): void
}

/** A call that does not go through the daemon. */
const NOT_CARRIED: CarriedCall = {
  lostThread: async () => undefined,
  daemonBack: async () => {},
  end: () => {},
}

/** The death of a daemon thread, and the routes whose calls it carried. */
interface Death {
  readonly thread: string
  readonly at: number
  readonly routes: Set<string>
}

/** Deaths further apart than this are unrelated, ms. */
const RELATED_MS = 600_000

/**
 * After this many deaths, the only route that was carried at each of them is blamed, even if other routes were carried at
 * some.
 */
const ENOUGH_DEATHS = 3

/** How often the daemon is polled until it is back, and for how long, ms. A thread is restarted within a second. */
const BACK_EVERY_MS = 250
const BACK_WITHIN_MS = 5_000

/**
 * Number of threads whose calls are remembered. Calls that the runtime ends together with their request never reach `end`,
 * so their counts must not be kept forever.
 */
const MAX_THREADS = 8

/** The failure of a blamed route: it rests at once, because each further death would end other customers' calls, too. */
const BLAME: Failure = { kind: 'unavailable', retryAfterMs: MAX_RETRY_AFTER_MS }

/**
 * The calls that the daemon carries for this worker, by route. When a daemon thread dies, nothing shows which answer killed
 * it, if any did. A route is blamed when the last two dead threads carried calls of no other route, or when it is the only
 * route that each of the last three carried. Two deaths are not enough where other routes were carried as well: a route that
 * is always busy was also carried by threads that died for another reason. Where several routes were carried each time, none
 * is blamed.
 */
export class CarriedCalls {
  readonly #daemon: Daemon
  readonly #now: () => number
  /** Number of open calls of each route, by thread. */
  readonly #open = new Map<string, Map<string, number>>()
  /** The last three deaths, the newest one last. */
  #deaths: readonly Death[] = []

  /** @param now ms since the epoch */
  constructor(daemon: Daemon, now: () => number) {
    this.#daemon = daemon
    this.#now = now
  }

  begin(route: Route): CarriedCall {
    if (!isCarried(route)) return NOT_CARRIED
    const watch = this.#daemon.watchThread()
    const { thread } = watch
    if (thread !== undefined) this.#count(thread, route.id, 1)
    let isOver = false
    return {
      lostThread: () => this.#lostThread(watch, route.id),
      daemonBack: (pause) => this.#daemonBack(pause),
      end: () => {
        if (thread !== undefined && !isOver) this.#count(thread, route.id, -1)
        isOver = true
      },
    }
  }

  async #lostThread(watch: ThreadWatch, route: string): Promise<LostThread | undefined> {
    const error = await watch.loss()
    if (error === undefined) return undefined
    // The thread is unknown, and may have died before the call.
    if (watch.thread === undefined) return { error, failure: undefined }
    const death = this.#note(watch.thread, route)
    return { error, failure: this.#isToBlame(route, death) ? BLAME : undefined }
  }

  /** Records the death of a thread. The first report adds the routes of all calls that are still open there. */
  #note(thread: string, route: string): Death {
    const known = this.#deaths.find((death) => death.thread === thread)
    known?.routes.add(route)
    if (known !== undefined) return known
    const routes = new Set(this.#open.get(thread)?.keys()).add(route)
    this.#open.delete(thread)
    const death = { thread, at: this.#now(), routes }
    this.#deaths = [...this.#deaths.slice(1 - ENOUGH_DEATHS), death]
    return death
  }

  #isToBlame(route: string, death: Death): boolean {
    if (this.#deaths.at(-1) !== death) return false
    const related = this.#deaths.filter(({ at }) => Math.abs(death.at - at) < RELATED_MS)
    const lastTwo = related.slice(-2)
    const isAlone = ({ routes }: Death) => routes.size === 1 && routes.has(route)
    if (lastTwo.length === 2 && lastTwo.every(isAlone)) return true
    const always = [...death.routes].filter((one) => related.every(({ routes }) => routes.has(one)))
    return related.length === ENOUGH_DEATHS && always.length === 1 && always[0] === route
  }

  async #daemonBack(pause: (ms: number) => Promise<void>): Promise<void> {
    const begunAt = this.#now()
    for (;;) {
      try {
        await this.#daemon.state()
        return
      } catch (error) {
        // Measures time instead of counting tries, because a hung daemon takes seconds to fail.
        if (Math.abs(this.#now() - begunAt) + BACK_EVERY_MS >= BACK_WITHIN_MS) throw error
      }
      await pause(BACK_EVERY_MS)
    }
  }

  #count(thread: string, route: string, change: 1 | -1): void {
    const routes = this.#open.get(thread)
    if (routes === undefined) {
      // Ends of calls whose thread has died are not counted.
      if (change === 1) this.#add(thread, route)
      return
    }
    const calls = (routes.get(route) ?? 0) + change
    if (calls > 0) routes.set(route, calls)
    else routes.delete(route)
    if (routes.size === 0) this.#open.delete(thread)
  }

  #add(thread: string, route: string): void {
    this.#open.set(thread, new Map([[route, 1]]))
    const [oldest] = this.#open.keys()
    if (oldest !== undefined && this.#open.size > MAX_THREADS) this.#open.delete(oldest)
  }
}
