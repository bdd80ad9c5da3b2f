import type { After } from './deadline-timer.ts'

interface Alarm {
  /** In time that only grows, ms. */
  readonly dueAt: number
  readonly passed: () => void
}

/** The timer of the platform that runs. */
interface Running {
  readonly timer: ReturnType<typeof setTimeout>
  /** When it was started, in time that only grows and by the clock, ms. */
  readonly from: number
  readonly startedAt: number
  readonly ms: number
}

/**
 * Measures all times of one request with one timer of the platform. A request has several time limits, nearly all of which
 * are stopped long before they pass, and setting and clearing a timer of the platform for each costs more than reading a
 * small body. Here a limit that is stopped leaves the timer alone: it fires once for nothing, or ends with its request.
 *
 * Times are counted by the platform's timers. The clock, which may be set meanwhile, only tells how much of the running
 * timer has passed when another time begins: after a clock was set forward, a limit that begins then may pass later, at most by
 * what was left of the running timer.
 * @param now ms
 */
export function oneTimer(now: () => number): After {
  const alarms = new Set<Alarm>()
  let running: Running | undefined
  let firedAt = 0

  function time(): number {
    if (running === undefined) return firedAt
    const { from, startedAt, ms } = running
    return from + Math.min(Math.max(now() - startedAt, 0), ms)
  }

  function startFor({ dueAt }: Alarm): void {
    if (running !== undefined && running.from + running.ms <= dueAt) return
    const from = time()
    if (running !== undefined) clearTimeout(running.timer)
    const ms = dueAt - from
    running = { timer: setTimeout(fire, ms), from, startedAt: now(), ms }
  }

  function fire(): void {
    firedAt = running === undefined ? firedAt : running.from + running.ms
    running = undefined
    callDue()
  }

  function callDue(): void {
    const [first] = [...alarms].toSorted((one, other) => one.dueAt - other.dueAt)
    if (first === undefined) return
    if (first.dueAt > firedAt) return startFor(first)
    alarms.delete(first)
    try {
      first.passed()
    } finally {
      // Also when it throws: the others do not depend on it.
      callDue()
    }
  }

  return (ms, passed) => {
    const alarm = { dueAt: time() + ms, passed }
    alarms.add(alarm)
    startFor(alarm)
    return { stop: () => void alarms.delete(alarm) }
  }
}
