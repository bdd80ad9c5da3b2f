import type { Log, LogEvent, LogFields } from './log.ts'

/** An event as it was logged. */
export interface LoggedEvent {
  readonly event: LogEvent
  readonly fields: LogFields
  /** Ms. */
  readonly at: number
}

/** Takes note of events, oldest first. Must not throw. */
export type EventSink = (events: readonly LoggedEvent[]) => void

/** How long an event may wait for others, ms. */
const JOIN_MS = 50

/** More events are not kept waiting. */
const MAX_EVENTS = 1_024

export interface EventLogDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Keeps the current request alive until this work has ended, even after its own answer is sent. */
  readonly keepAlive: (work: Promise<unknown>) => void
  /** Whether events may wait for others; else each is noted at once. */
  readonly joins: boolean
  /** What takes note of each event, in this order. */
  readonly sinks: readonly EventSink[]
}

/**
 * Notes what is logged a moment later, together with all that is logged in that moment: lines, metrics, spans and counts keep
 * no answer waiting, their code is run for many events in a row, and the console is called once for all
 * (docs/performance-findings.md, "What is noted of a request"). Whoever reads what sinks have noted asks for `catchUp` first.
 */
export class EventLog {
  readonly #deps: EventLogDeps
  #waiting: LoggedEvent[] = []
  /** When the first of them came, ms. */
  #since = 0

  constructor(deps: EventLogDeps) {
    this.#deps = deps
  }

  readonly log: Log = (event, fields = {}) => {
    const { now, joins } = this.#deps
    const at = now()
    this.#waiting.push({ event, fields, at })
    if (!joins) return this.catchUp()
    if (this.#waiting.length === 1) return this.#noteSoon(at)
    // The runtime may have ended the request that was to do it.
    const isLate = Math.abs(at - this.#since) > 2 * JOIN_MS
    if (isLate || this.#waiting.length >= MAX_EVENTS) this.catchUp()
  }

  /** Has all that was logged so far noted. */
  catchUp(): void {
    if (this.#waiting.length === 0) return
    const events = this.#waiting
    this.#waiting = []
    for (const note of this.#deps.sinks) note(events)
  }

  #noteSoon(at: number): void {
    const { pause, keepAlive } = this.#deps
    this.#since = at
    keepAlive(pause(JOIN_MS).then(() => this.catchUp()))
  }
}
