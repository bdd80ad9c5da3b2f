import { StorageUnavailable } from './database.ts'

/** One connection of a pool, used by one batch at a time. */
export interface Lane {
  /** Drops the connection without waiting for an answer. */
  discard(): void
}

export interface Lanes<L extends Lane> {
  /**
   * Gives a lane to `work` alone, in the order of asking.
   * @throws StorageUnavailable when waiting and work together pass the deadline; the lane is then replaced,
   *   because what a late answer on it would belong to is unknown
   */
  use<Result>(work: (lane: L) => Promise<Result>): Promise<Result>
}

/** A pool of `size` lanes, each opened at its first use. */
export function createLanes<L extends Lane>(options: {
  readonly open: () => L
  readonly size: number
  readonly deadlineMs: number
  /** Whether a lane can still be trusted after its work failed so. */
  readonly survives: (error: unknown) => boolean
}): Lanes<L> {
  const idle: (L | undefined)[] = Array.from({ length: options.size }, () => undefined)
  const waiting: ((lane: L | undefined) => void)[] = []

  function release(lane: L | undefined) {
    const next = waiting.shift()
    if (next === undefined) idle.push(lane)
    else next(lane)
  }

  function acquire(): Promise<L | undefined> {
    if (idle.length > 0) return Promise.resolve(idle.pop())
    return new Promise((resolve) => waiting.push(resolve))
  }

  return {
    async use(work) {
      const deadline = startDeadline(options.deadlineMs)
      let lane: L | undefined
      try {
        const acquired = acquire()
        lane = await Promise.race([acquired, deadline.passed]).catch((error: unknown) => {
          void acquired.then(release)
          throw error
        })
      } catch (error) {
        deadline.stop()
        throw error
      }
      lane ??= options.open()
      try {
        return await Promise.race([work(lane), deadline.passed])
      } catch (error) {
        if (deadline.isPassed() || !options.survives(error)) {
          lane.discard()
          lane = undefined
        }
        throw error
      } finally {
        deadline.stop()
        release(lane)
      }
    },
  }
}

function startDeadline(ms: number) {
  const { promise, reject } = Promise.withResolvers<never>()
  let passed = false
  const timer = setTimeout(() => {
    passed = true
    reject(new StorageUnavailable(`the database did not answer within ${ms} ms`))
  }, ms)
  return { passed: promise, isPassed: () => passed, stop: () => clearTimeout(timer) }
}
