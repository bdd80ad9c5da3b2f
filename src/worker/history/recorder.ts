import type { EventSink } from '../http/event-log.ts'
import type { LogEvent, LogFields } from '../http/log.ts'
import { bucketOf, type Series } from './series.ts'
import type { Count } from './store.ts'

/** Delay from the first count to its write, ms; all counts until then are stored together. */
const WRITE_AFTER_MS = 5_000

/** A write that is overdue by more than this multiple of the delay is presumed lost. */
const LATE_FACTOR = 2

/** Maximum number of minutes that are kept in memory while the storage is unavailable; the oldest are dropped. */
const MAX_MINUTES = 120

const MINUTE_MS = 60_000

export interface RecorderDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Whether the endpoint with this name is one that customers use. */
  readonly isKeyed: (endpoint: string) => boolean
  /** Adds the counts to the stored ones. */
  readonly store: (counts: readonly Count[]) => Promise<void>
}

/** Counts this worker's events minute by minute and stores the counts without delaying answers. */
export class HistoryRecorder {
  readonly #deps: RecorderDeps
  /** Counts of labels by minute and series. */
  #minutes = new Map<number, Map<Series, Map<string, number>>>()
  /** When the scheduled write is due, ms; undefined where none is scheduled. */
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
   * Stores the counts after a delay; undefined where a write is already scheduled or nothing was counted. Counts that cannot
   * be stored are kept for a later write.
   */
  writeSoon(): Promise<void> | undefined {
    const at = this.#deps.now()
    // The runtime may have ended the request that was to run the write.
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
      // The storage itself reports its outage, so the error is not logged here.
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
