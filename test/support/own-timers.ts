import { AsyncLocalStorage } from 'node:async_hooks'

/** The timers that a test has set, itself or through what it called. */
export interface OwnTimers {
  /** How many were set so far. */
  readonly set: () => number
  /** How many of them have neither fired nor been stopped. */
  readonly left: () => number
}

/**
 * Counts the timers of the test that calls it first of all, under fake timers. `vi.getTimerCount()` also counts those that
 * other files leave behind in the same process. Ends with the fake timers.
 */
export function ownTimers(): OwnTimers {
  const mine = new AsyncLocalStorage<boolean>()
  mine.enterWith(true)
  const { setTimeout: fakeSet, clearTimeout: fakeClear } = globalThis
  const left = new Set<unknown>()
  let count = 0
  const set = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    if (mine.getStore() !== true) {
      // What another file's timer sets when it fires under this test's hand is not this test's.
      return fakeSet(AsyncLocalStorage.bind(callback), ms, ...args)
    }
    count += 1
    const fire = () => {
      left.delete(timer)
      callback(...args)
    }
    const timer: NodeJS.Timeout = fakeSet(AsyncLocalStorage.bind(fire), ms)
    left.add(timer)
    return timer
  }
  const clear = (timer?: NodeJS.Timeout | string | number) => {
    left.delete(timer)
    fakeClear(timer)
  }
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear })
  return { set: () => count, left: () => left.size }
}
