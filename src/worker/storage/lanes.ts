import { StorageUnavailable } from './database.ts'

/** One connection of a pool, used by one batch at a time. */
export interface Lane {
  /** Drops the connection without waiting for an answer. */
  discard(): void
}

export interface Lanes<L extends Lane> {
  /**
   * Gives a lane to `work` alone, in the order of asking, but to no owner more than its share.
   * @throws StorageUnavailable when waiting and work together pass the deadline; the lane is then replaced,
   *   because what a late answer on it would belong to is unknown
   */
  use<Result>(owner: string, work: (lane: L) => Promise<Result>): Promise<Result>
}

export interface LaneOptions<L extends Lane> {
  readonly open: () => L
  readonly size: number
  /** The most lanes of one owner: those that wait for each other's locks must leave some for the rest. */
  readonly share: number
  readonly deadlineMs: number
  /** Whether a lane can still be trusted after its work failed so. */
  readonly survives: (error: unknown) => boolean
}

/** A pool of lanes, each opened at its first use. */
export function createLanes<L extends Lane>(options: LaneOptions<L>): Lanes<L> {
  const queue = createLaneQueue<L>(options)
  return {
    async use(owner, work) {
      const deadline = startDeadline(options.deadlineMs)
      try {
        const lane = await queue.acquire(owner, deadline.passed)
        return await runOn(lane ?? options.open(), work, deadline.passed, {
          done: (kept) => queue.release(owner, kept),
          survives: options.survives,
        })
      } finally {
        deadline.stop()
      }
    },
  }
}

async function runOn<L extends Lane, Result>(
  lane: L,
  work: (lane: L) => Promise<Result>,
  passed: Promise<never>,
  hooks: {
    readonly done: (kept: L | undefined) => void
    readonly survives: LaneOptions<L>['survives']
  },
): Promise<Result> {
  try {
    const result = await Promise.race([work(lane), passed])
    hooks.done(lane)
    return result
  } catch (error) {
    const keep = !(error instanceof DeadlinePassed) && hooks.survives(error)
    if (!keep) lane.discard()
    hooks.done(keep ? lane : undefined)
    throw error
  }
}

/** Hands out lanes; undefined stands for one that is not open. */
function createLaneQueue<L extends Lane>({ size, share }: LaneOptions<L>) {
  const idle: (L | undefined)[] = Array.from({ length: size }, () => undefined)
  const busy = new Map<string, number>()
  const waiting: { owner: string; take: (lane: L | undefined) => void }[] = []

  const mayTake = (owner: string) => (busy.get(owner) ?? 0) < share
  const count = (owner: string, change: 1 | -1) => {
    const now = (busy.get(owner) ?? 0) + change
    if (now === 0) busy.delete(owner)
    else busy.set(owner, now)
  }

  async function acquire(owner: string, passed: Promise<never>): Promise<L | undefined> {
    if (idle.length > 0 && mayTake(owner)) {
      count(owner, 1)
      return idle.pop()
    }
    const { promise, resolve } = Promise.withResolvers<L | undefined>()
    const waiter = { owner, take: resolve }
    waiting.push(waiter)
    try {
      return await Promise.race([promise, passed])
    } catch (error) {
      const index = waiting.indexOf(waiter)
      if (index >= 0) waiting.splice(index, 1)
      else void promise.then((lane) => release(owner, lane))
      throw error
    }
  }

  function release(owner: string, lane: L | undefined): void {
    count(owner, -1)
    const index = waiting.findIndex((waiter) => mayTake(waiter.owner))
    const [next] = index < 0 ? [] : waiting.splice(index, 1)
    if (next === undefined) {
      idle.push(lane)
    } else {
      count(next.owner, 1)
      next.take(lane)
    }
  }

  return { acquire, release }
}

class DeadlinePassed extends StorageUnavailable {}

function startDeadline(ms: number) {
  const { promise, reject } = Promise.withResolvers<never>()
  const message = `the database did not answer within ${ms} ms`
  const timer = setTimeout(() => reject(new DeadlinePassed(message)), ms)
  return { passed: promise, stop: () => clearTimeout(timer) }
}
