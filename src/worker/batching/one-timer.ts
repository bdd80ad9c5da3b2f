import type { After } from './deadline-timer.ts'

interface Alarm {
  readonly ms: number
  readonly passed: () => void
  /** Counted from the moment, ms; of a later time it is known once the timer has fired. */
  dueAt: number
  /** What the clock showed when a later time began, until the timer has fired. */
  begunAt: number | undefined
}

/**
 * Measures all times of one request, nearly always with one timer of the platform. A request has several time limits, nearly
 * all of which are stopped long before they pass, and setting and clearing a timer of the platform for each costs more than
 * reading a small body. Here a limit that is stopped leaves the timer alone: it fires once for nothing, or ends with its request.
 *
 * Times that begin while the clock shows the same are counted by the platform's timer alone, whatever is done to the clock
 * meanwhile. So is one that begins later, if a timer of some seconds runs that is sure to fire before it passes; how much of it
 * has passed by then is read from the clock, but is never more than all that the timer ran. So where the clock is set between, it
 * passes early or late by at most that.
 * @param now ms
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
 * A moment's timer fires after this time at the latest, ms: then a limit of minutes that is set before one of seconds needs no
 * timer that the other replaces at once. Later times are taken by no timer that runs longer.
 */
const FIRST_AFTER_MS = 5_000

/** The times that begin in one moment, and later ones that need no timer of their own. */
class Moment {
  readonly #now: () => number
  readonly #alarms = new Set<Alarm>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** How long the timer runs, ms; 0 where none does. */
  #runsFor = 0
  /** When the timer fires next, and when it last did, since the moment, ms. */
  #firesAt = Number.POSITIVE_INFINITY
  #firedAt = 0
  #hasFired = false
  #hasEnded = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether time has passed since the moment, whatever the clock says. */
  get hasFired(): boolean {
    return this.#hasFired
  }

  /** Whether its timer is sure to fire, within seconds, before a time passes that begins now. */
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

  /** Finds when the times pass that began while the timer ran. */
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
      // Also when it throws: the others do not depend on it.
      this.#callDue()
    }
  }
}
