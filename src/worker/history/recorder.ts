import type { EventSink } from '../http/event-log.ts'
import type { LogEvent, LogFields } from '../http/log.ts'
import { bucketOf, type Series } from './series.ts'
import type { Count } from './store.ts'

/** What happened is stored so long after it, together with what happens meanwhile, ms. */
const WRITE_AFTER_MS = 5_000

/** After so many times that long, nobody is taken to be about to do it. */
const LATE_FACTOR = 2

/** While the storage is away so many minutes are remembered; then the oldest are forgotten. */
const MAX_MINUTES = 120

const MINUTE_MS = 60_000

export interface RecorderDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Whether an endpoint, by its name, is one that customers use. */
  readonly isKeyed: (endpoint: string) => boolean
  /** Adds the counts to the stored ones. */
  readonly store: (counts: readonly Count[]) => Promise<void>
}

/** Counts what this worker does minute by minute, from the events it logs, and stores it behind the answers. */
export class HistoryRecorder {
  readonly #deps: RecorderDeps
  /** Counts of labels by minute and series. */
  #minutes = new Map<number, Map<Series, Map<string, number>>>()
  /** When what was counted is stored, ms; undefined where nobody is about to. */
  #due: number | undefined

  constructor(deps: RecorderDeps) {
    this.#deps = deps
  }

  readonly #handlers: Partial<Record<LogEvent, (fields: LogFields, minute: number) => void>> = {
    request: ({ endpoint = '', status = 0, code, duration_ms = 0 }, minute) => {
      if (!this.#deps.isKeyed(endpoint)) return
      this.#add('requests', '', 1, minute)
      this.#add('duration', bucketOf(duration_ms), 1, minute)
      if (status >= 400) this.#add('errors', `${status} ${code ?? 'none'}`, 1, minute)
    },
    attempt_served: ({ failover = false, first_delta_ms }, minute) => {
      if (failover) this.#add('failovers', '', 1, minute)
      if (first_delta_ms !== undefined)
        this.#add('first_delta', bucketOf(first_delta_ms), 1, minute)
    },
    settled: ({ prompt_tokens = 0, completion_tokens = 0, cost_nano = 0 }, minute) => {
      this.#add('prompt_tokens', '', prompt_tokens, minute)
      this.#add('completion_tokens', '', completion_tokens, minute)
      this.#add('cost', '', cost_nano, minute)
    },
  }

  /** Counts events, each in the minute in which it was logged. */
  readonly count: EventSink = (events) => {
    for (const { event, fields, at } of events) {
      this.#handlers[event]?.(fields, at - (at % MINUTE_MS))
    }
  }

  /**
   * Stores what was counted a moment later; undefined where that is under way or nothing was counted. What cannot be
   * stored is tried again later.
   */
  writeSoon(): Promise<void> | undefined {
    const at = this.#deps.now()
    // The runtime may have ended the request that was to do it.
    const isUnderWay =
      this.#due !== undefined && Math.abs(this.#due - at) <= LATE_FACTOR * WRITE_AFTER_MS
    if (isUnderWay || this.#minutes.size === 0) return undefined
    this.#due = at + WRITE_AFTER_MS
    return this.#write()
  }

  async #write(): Promise<void> {
    await this.#deps.pause(WRITE_AFTER_MS)
    this.#due = undefined
    const counts = this.#take()
    try {
      await this.#deps.store(counts)
    } catch {
      // The storage itself reports that it is away.
      for (const { minute, series, label, value } of counts) {
        this.#add(series, label, value, minute)
      }
    }
  }

  #take(): Count[] {
    const taken = this.#minutes
    this.#minutes = new Map()
    return [...taken].flatMap(([minute, bySeries]) =>
      [...bySeries].flatMap(([series, byLabel]) =>
        [...byLabel].map(([label, value]) => ({ minute, series, label, value })),
      ),
    )
  }

  #add(series: Series, label: string, value: number, minute: number): void {
    if (value === 0) return
    const bySeries = this.#minutes.get(minute) ?? this.#begin(minute)
    const byLabel = bySeries.get(series) ?? new Map<string, number>()
    bySeries.set(series, byLabel.set(label, (byLabel.get(label) ?? 0) + value))
  }

  #begin(minute: number): Map<Series, Map<string, number>> {
    const bySeries = new Map<Series, Map<string, number>>()
    this.#minutes.set(minute, bySeries)
    if (this.#minutes.size > MAX_MINUTES) this.#minutes.delete(Math.min(...this.#minutes.keys()))
    return bySeries
  }
}
