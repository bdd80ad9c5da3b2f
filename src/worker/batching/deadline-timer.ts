/** A timer that fires later than this after its time shows that the program was not running, ms. */
const LATE_MS = 250

/** Extra time to read what arrived while the program was not running, ms. */
const GRACE_MS = 1_000

/**
 * How often a late timer gets that extra time. The number is limited, because deadlines of an overloaded program, which is
 * always late, must pass, too.
 */
const MAX_GRACES = 10

export interface DeadlineTimer {
  stop(): void
}

/** A deadline for the work of others. */
export interface Deadline extends DeadlineTimer {
  /** How long until the deadline can pass at the earliest, ms; 0 once it may pass at any moment. */
  leftMs(): number
}

/** Calls `passed` after `ms` milliseconds, unless it is stopped first. */
export type After = (ms: number, passed: () => void) => DeadlineTimer

/** Sets a platform timer for each call. */
export const after: After = (ms, passed) => {
  const timer = setTimeout(passed, ms)
  return { stop: () => clearTimeout(timer) }
}

/**
 * Calls `passed` after `ms` milliseconds, for deadlines of others: a provider, the daemon. After a time in which the program
 * was not running (a machine that is short of CPU, a paused guest), timers fire before what has arrived is read, and an
 * answer that came in time would count as late. So a timer that fires late waits for another second, up to ten times if it
 * is late each time.
 * @param now ms since the epoch
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
    // Limited to `forMs`: after the clock was set back, the difference would include the whole step.
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
