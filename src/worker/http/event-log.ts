import type { Log, LogEvent, LogFields } from './log.ts'

/** A logged event. */
export interface LoggedEvent {
  readonly event: LogEvent
  readonly fields: LogFields
  /** Ms since the epoch. */
  readonly at: number
}

/** Consumes events, oldest first. Must not throw. */
export type EventSink = (events: readonly LoggedEvent[]) => void

/** How long an event may wait for others, ms. */
const JOIN_MS = 50

/** At this many waiting events, they are passed on without further delay. */
const MAX_EVENTS = 1_024

export interface EventLogDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Keeps the current request alive until this work has ended, even after its own answer is sent. */
  readonly keepAlive: (work: Promise<unknown>) => void
  /** Whether events may wait for others; else each is passed on at once. */
  readonly joins: boolean
  /** The consumers of each event, in this order. */
  readonly sinks: readonly EventSink[]
}

/**
 * Passes logged events to the sinks a little later, in batches: lines, metrics, spans and counts then delay no answer, their
 * code runs for many events in a row, and the console is called once for all (docs/performance-findings.md, "What is noted
 * of a request"). Code that reads a sink's data must call `catchUp` first.
 */
export class EventLog {
  readonly #deps: EventLogDeps
  #waiting: LoggedEvent[] = []
  /** When the first waiting event was logged, ms since the epoch. */
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
    // The runtime may have ended the request that scheduled the batch.
    const isLate = Math.abs(at - this.#since) > 2 * JOIN_MS
    if (isLate || this.#waiting.length >= MAX_EVENTS) this.catchUp()
  }

  /** Passes all events so far to the sinks. */
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
