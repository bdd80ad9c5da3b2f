import type { Link, LinkUnavailable, ThreadWatch } from '../link/link.ts'
import type { Failure } from '../provider/failure.ts'
import { MAX_RETRY_AFTER_MS } from '../provider/retry-after.ts'
import { isCarried, type Route } from '../provider/route.ts'

/** What this needs of the link. */
type Daemon = Pick<Link, 'watchThread'> & { state(): Promise<unknown> }

/** A call whose thread of the daemon was lost. */
export interface LostThread {
  readonly error: LinkUnavailable
  /** What counts against the route; undefined where the loss says nothing of it. */
  readonly failure: Failure | undefined
}

/** A call of a route from its beginning to the end of its answer. */
export interface CarriedCall {
  /**
   * To be asked when the call broke off or ran out of time without a word. Undefined: the thread of the daemon that
   * carried it still answers, or none did, so that it was the provider.
   */
  lostThread(): Promise<LostThread | undefined>
  /**
   * Waits until the daemon answers again.
   * @throws LinkUnavailable when it takes too long
   */
  daemonBack(pause: (ms: number) => Promise<void>): Promise<void>
  end(): void
}

/** A call that goes past the daemon. */
const NOT_CARRIED: CarriedCall = {
  lostThread: async () => undefined,
  daemonBack: async () => {},
  end: () => {},
}

/** A thread that was lost, and the routes that it carried calls of. */
interface Death {
  readonly thread: string
  readonly at: number
  readonly routes: Set<string>
}

/** Deaths that are further apart have nothing to do with each other, ms. */
const RELATED_MS = 600_000

/** After so many deaths, a route that alone was carried at each of them is to blame, whatever else was carried at some. */
const ENOUGH_DEATHS = 3

/** How often the daemon is asked whether it is back, and for how long. A thread is started anew within a second. */
const BACK_EVERY_MS = 250
const BACK_WITHIN_MS = 5_000

/**
 * Threads of which calls are remembered. Calls that the runtime ended together with their request never end here, and
 * must not be kept for ever.
 */
const MAX_THREADS = 8

/** What a route that is to blame gets: it rests at once, since each further death ends other customers' calls, too. */
const BLAME: Failure = { kind: 'unavailable', retryAfterMs: MAX_RETRY_AFTER_MS }

/**
 * The calls that the daemon carries for this worker, by route. When its thread dies, nothing tells which answer it was that
 * killed it, if any did. A route is to blame when the last two threads that died carried calls of no other route, or when it is
 * the only one that each of the last three carried. Two are not enough where others were carried as well: of a route that is busy all
 * the time, threads that died for another reason carried calls, too. Where several routes were carried each time, none is to blame.
 */
export class CarriedCalls {
  readonly #daemon: Daemon
  readonly #now: () => number
  /** How many calls of each route are under way, by thread. */
  readonly #open = new Map<string, Map<string, number>>()
  /** The last three, the newest one last. */
  #deaths: readonly Death[] = []

  /** @param now ms */
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
    // A thread that was never known may have been gone before the call.
    if (watch.thread === undefined) return { error, failure: undefined }
    const death = this.#note(watch.thread, route)
    return { error, failure: this.#isToBlame(route, death) ? BLAME : undefined }
  }

  /** The death of a thread. The first call that reports it adds the routes of all calls that are still under way there. */
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
        // A daemon that stands still takes seconds to fail.
        if (Math.abs(this.#now() - begunAt) + BACK_EVERY_MS >= BACK_WITHIN_MS) throw error
      }
      await pause(BACK_EVERY_MS)
    }
  }

  #count(thread: string, route: string, change: 1 | -1): void {
    const routes = this.#open.get(thread)
    if (routes === undefined) {
      // The end of a call whose thread has died is not counted any more.
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
