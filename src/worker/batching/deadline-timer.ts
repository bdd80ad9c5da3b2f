/** A timer that fires later than this after its time shows that the program did not run meanwhile, ms. */
const LATE_MS = 250

/** The time for what arrived while the program did not run, ms. */
const GRACE_MS = 1_000

/** How often a late timer waits that time again: a program that is always late is overloaded, and its deadlines must pass, too. */
const MAX_GRACES = 10

export interface DeadlineTimer {
  stop(): void
}

/** A time that is kept for others. */
export interface Deadline extends DeadlineTimer {
  /** How long it lasts at least from now on, ms; 0 once it may pass at any moment. */
  leftMs(): number
}

/** Calls `passed` after `ms` milliseconds, unless it is stopped before. */
export type After = (ms: number, passed: () => void) => DeadlineTimer

/** Sets a timer of the platform for each call. */
export const after: After = (ms, passed) => {
  const timer = setTimeout(passed, ms)
  return { stop: () => clearTimeout(timer) }
}

/**
 * Calls `passed` after `ms` milliseconds, for deadlines of others: a provider, the daemon. After a time in which the program did
 * not run (a machine that is short of CPU, a paused guest) timers fire before what has arrived is read, and an answer that came in
 * time would be taken for a late one. So a timer that fires late waits for another second, up to ten times if it is late each time.
 * @param now ms
 */
export function startDeadline(
  ms: number,
  now: () => number,
  passed: () => void,
  callAfter: After = after,
): Deadline {
  let timer: DeadlineTimer
  let left: () => number
  const wait = (forMs: number, graces: number) => {
    const dueAt = now() + forMs
    const isGraceDue = () => graces > 0 && now() - dueAt > LATE_MS
    // After the clock was set back it would be the whole step more.
    const untilDue = () => Math.min(forMs, Math.max(0, dueAt - now()))
    left = () => (isGraceDue() ? GRACE_MS : untilDue())
    timer = callAfter(forMs, () => {
      if (isGraceDue()) return wait(GRACE_MS, graces - 1)
      left = () => 0
      passed()
    })
  }
  wait(ms, MAX_GRACES)
  return { stop: () => timer.stop(), leftMs: () => left() }
}
