import type { After } from './deadline-timer.ts'

interface Alarm {
  readonly ms: number
  readonly passed: () => void
  /**
   * When it is due, ms after the moment's start; for a limit that began while the timer ran, this is known only once the
   * timer has fired.
   */
  dueAt: number
  /** The clock when such a limit began, until the timer has fired. */
  begunAt: number | undefined
}

/**
 * Measures all time limits of one request, nearly always with one platform timer. A request has several time limits, nearly
 * all of which are stopped long before they pass, and setting and clearing a platform timer for each costs more than reading
 * a small body. Here, stopping a limit leaves the timer running: it fires once for nothing, or ends with its request.
 *
 * Limits that begin at the same clock reading are measured by the platform's timer alone, and so do not depend on changes of
 * the clock. The same holds for a limit that begins later while a timer is running that fires within seconds and before the
 * limit passes, except for one thing: when the timer fires, the elapsed part of the limit is read from the clock, bounded by
 * the timer's duration. So if the clock was changed meanwhile, that limit passes early or late by at most this duration.
 * @param now ms since the epoch
 */
export function oneTimer(now: () => number): After {
  let current: { readonly clock: number; readonly moment: Moment } | undefined

  function begin(ms: number, passed: () => void): { moment: Moment; alarm: Alarm } {
    const clock = now()
    const isSameMoment = current?.clock === clock && !current.moment.hasFired
    if (current !== undefined && (isSameMoment || current.moment.takesLater(ms))) {
      const alarm = { ms, passed, dueAt: ms, begunAt: isSameMoment ? undefined : clock }
      return { moment: current.moment, alarm }
    }
    current?.moment.end()
    current = { clock, moment: new Moment(now) }
    return { moment: current.moment, alarm: { ms, passed, dueAt: ms, begunAt: undefined } }
  }

  return (ms, passed) => {
    const { moment, alarm } = begin(ms, passed)
    moment.add(alarm)
    return { stop: () => moment.remove(alarm) }
  }
}

/**
 * A moment's timer first fires after this time at the latest, ms, so that a limit of minutes that is set before one of
 * seconds needs no timer that is replaced at once. Later limits join only a timer that runs no longer than this.
 */
const FIRST_AFTER_MS = 5_000

/** The limits that begin at one clock reading, and later ones that need no timer of their own. */
class Moment {
  readonly #now: () => number
  readonly #alarms = new Set<Alarm>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** How long the current timer runs, ms; 0 where none runs. */
  #runsFor = 0
  /** When the timer fires next, and when it last did, ms after the moment's start. */
  #firesAt = Number.POSITIVE_INFINITY
  #firedAt = 0
  #hasFired = false
  #hasEnded = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether the timer has fired, and so time has passed, whatever the clock says. */
  get hasFired(): boolean {
    return this.#hasFired
  }

  /** Whether the current timer is sure to fire, within seconds, before a limit of `ms` that begins now. */
  takesLater(ms: number): boolean {
    return this.#runsFor > 0 && this.#runsFor <= Math.min(ms, FIRST_AFTER_MS)
  }

  add(alarm: Alarm): void {
    this.#alarms.add(alarm)
    if (alarm.begunAt !== undefined) return
    if (this.#timer === undefined) this.#startFor(Math.min(alarm.dueAt, FIRST_AFTER_MS))
    else if (alarm.dueAt < this.#firesAt) this.#startFor(alarm.dueAt)
  }

  remove(alarm: Alarm): void {
    this.#alarms.delete(alarm)
    this.#clearIfIdle()
  }

  /** No more limits begin in this moment. */
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
    this.#runsFor = dueAt - this.#firedAt
    this.#timer = setTimeout(() => this.#fire(), this.#runsFor)
  }

  #fire(): void {
    this.#hasFired = true
    this.#firedAt = this.#firesAt
    this.#placeLater()
    this.#runsFor = 0
    this.#callDue()
  }

  /** Computes when the limits pass that began while the timer ran. */
  #placeLater(): void {
    const clock = this.#now()
    for (const alarm of this.#alarms) {
      if (alarm.begunAt === undefined) continue
      const passed = Math.max(0, Math.min(clock - alarm.begunAt, this.#runsFor))
      alarm.dueAt = this.#firedAt + alarm.ms - passed
      alarm.begunAt = undefined
    }
  }

  #callDue(): void {
    const [first] = [...this.#alarms].toSorted((one, other) => one.dueAt - other.dueAt)
    if (first === undefined) return
    if (first.dueAt > this.#firedAt) return this.#startFor(first.dueAt)
    this.#alarms.delete(first)
    try {
      first.passed()
    } finally {
      // Runs even if a callback throws, because the other limits must pass, too.
      this.#callDue()
    }
  }
}
