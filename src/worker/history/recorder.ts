import type { Log, LogEvent, LogFields } from '../http/log.ts'
import { bucketOf, type Series } from './series.ts'
import type { Count } from './store.ts'

/** What happened is stored so long after it, together with what happens meanwhile, ms. */
const WRITE_AFTER_MS = 5_000

/** While the storage is away so many minutes are remembered; then the oldest are forgotten. */
const MAX_MINUTES = 120

const MINUTE_MS = 60_000

export interface RecorderDeps {
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
  #writing = false

  constructor(deps: RecorderDeps) {
    this.#deps = deps
  }

  readonly #handlers: Partial<Record<LogEvent, (fields: LogFields) => void>> = {
    request: ({ endpoint = '', status = 0, code, duration_ms = 0 }) => {
      if (!this.#deps.isKeyed(endpoint)) return
      this.#add('requests', '', 1)
      this.#add('duration', bucketOf(duration_ms), 1)
      if (status >= 400) this.#add('errors', `${status} ${code ?? 'none'}`, 1)
    },
    attempt_served: ({ failover = false, first_delta_ms }) => {
      if (failover) this.#add('failovers', '', 1)
      if (first_delta_ms !== undefined) this.#add('first_delta', bucketOf(first_delta_ms), 1)
    },
    settled: ({ prompt_tokens = 0, completion_tokens = 0, cost_nano = 0 }) => {
      this.#add('prompt_tokens', '', prompt_tokens)
      this.#add('completion_tokens', '', completion_tokens)
      this.#add('cost', '', cost_nano)
    },
  }

  /** A log that also counts every event. */
  counting(log: Log): Log {
    return (event, fields = {}) => {
      this.#handlers[event]?.(fields)
      log(event, fields)
    }
  }

  /**
   * Stores what was counted a moment later; undefined where that is under way or nothing was counted. What cannot be
   * stored is tried again later.
   */
  writeSoon(): Promise<void> | undefined {
    if (this.#writing || this.#minutes.size === 0) return undefined
    this.#writing = true
    return this.#write()
  }

  async #write(): Promise<void> {
    await this.#deps.pause(WRITE_AFTER_MS)
    this.#writing = false
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

  #add(series: Series, label: string, value: number, minute = this.#minuteNow()): void {
    if (value === 0) return
    const bySeries = this.#minutes.get(minute) ?? new Map<Series, Map<string, number>>()
    const byLabel = bySeries.get(series) ?? new Map<string, number>()
    bySeries.set(series, byLabel.set(label, (byLabel.get(label) ?? 0) + value))
    this.#minutes.set(minute, bySeries)
    if (this.#minutes.size > MAX_MINUTES) this.#minutes.delete(Math.min(...this.#minutes.keys()))
  }

  #minuteNow(): number {
    const now = this.#deps.now()
    return now - (now % MINUTE_MS)
  }
}
