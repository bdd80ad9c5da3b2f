import type { After } from './deadline-timer.ts'

interface Alarm {
  /** Since the moment in which it was set, ms. */
  readonly dueAt: number
  readonly passed: () => void
}

/**
 * Measures all times of one request, those that begin in the same moment with one timer of the platform. A request has several
 * time limits, nearly all of which begin together and are stopped long before they pass, and setting and clearing a timer of
 * the platform for each costs more than reading a small body. Here a limit that is stopped leaves the timer alone: it fires
 * once for nothing, or ends with its request.
 *
 * Times are counted by the platform's timers alone. The clock, which may be set meanwhile, only tells whether the moment is
 * still the same: in workerd it stands still until something arrives.
 * @param now ms
 */
export function oneTimer(now: () => number): After {
  let current: { readonly clock: number; readonly moment: Moment } | undefined

  function momentNow(): Moment {
    const clock = now()
    if (current?.clock === clock && !current.moment.hasFired) return current.moment
    current?.moment.end()
    current = { clock, moment: new Moment() }
    return current.moment
  }

  return (ms, passed) => {
    const moment = momentNow()
    const alarm = { dueAt: ms, passed }
    moment.add(alarm)
    return { stop: () => moment.remove(alarm) }
  }
}

/**
 * A moment's timer fires after this time at the latest, ms: then a limit of minutes that is set before one of seconds needs no
 * timer that the other replaces at once.
 */
const FIRST_AFTER_MS = 5_000

/** The times that begin in one moment. */
class Moment {
  readonly #alarms = new Set<Alarm>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** When the timer fires next, and when it last did, since the moment, ms. */
  #firesAt = Number.POSITIVE_INFINITY
  #firedAt = 0
  #hasFired = false
  #hasEnded = false

  /** Whether time has passed since the moment, whatever the clock says. */
  get hasFired(): boolean {
    return this.#hasFired
  }

  add(alarm: Alarm): void {
    this.#alarms.add(alarm)
    if (this.#timer === undefined) this.#startFor(Math.min(alarm.dueAt, FIRST_AFTER_MS))
    else if (alarm.dueAt < this.#firesAt) this.#startFor(alarm.dueAt)
  }

  remove(alarm: Alarm): void {
    this.#alarms.delete(alarm)
    this.#clearIfIdle()
  }

  /** No more times begin in it. */
  end(): void {
    this.#hasEnded = true
    this.#clearIfIdle()
  }

  #clearIfIdle(): void {
    if (this.#hasEnded && this.#alarms.size === 0) this.#clear()
  }

  #clear(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
  }

  #startFor(dueAt: number): void {
    this.#clear()
    this.#firesAt = dueAt
    this.#timer = setTimeout(() => this.#fire(), dueAt - this.#firedAt)
  }

  #fire(): void {
    this.#hasFired = true
    this.#firedAt = this.#firesAt
    this.#callDue()
  }

  #callDue(): void {
    const [first] = [...this.#alarms].toSorted((one, other) => one.dueAt - other.dueAt)
    if (first === undefined) return
    if (first.dueAt > this.#firedAt) return this.#startFor(first.dueAt)
    this.#alarms.delete(first)
    try {
      first.passed()
    } finally {
      // Also when it throws: the others do not depend on it.
      this.#callDue()
    }
  }
}
