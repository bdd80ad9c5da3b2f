import { addExpositions } from '../../protocol/exposition.ts'
import type { TelemetryAnswer, TelemetryReport } from '../../protocol/telemetry.ts'

type Report = Omit<TelemetryReport, 'spans'>

/** How long after its last report a worker counts as running, and its states count, ms. Its counters always count. */
const CURRENT_MS = 300_000

/**
 * Beyond this number of workers, running or ended, the counters of those that have ended are summed. Those of one that
 * may report again must be kept separately: its next report counts them once more.
 */
const MAX_INSTANCES = 64

/**
 * The last report of every worker on the host. Counters of workers that have ended stay in the sum, so the sum never
 * falls.
 */
export class WorkerReports {
  readonly #now: () => number
  readonly #host: () => string
  readonly #reports = new Map<string, Report & { readonly at: number }>()
  #ended = ''

  /**
   * @param host returns the counts from outside of the workers, in the Prometheus text format; they are part of every
   *   sum
   */
  constructor(now: () => number, host: () => string) {
    this.#now = now
    this.#host = host
  }

  take(report: Report): void {
    this.#reports.delete(report.instance)
    this.#reports.set(report.instance, { ...report, at: this.#now() })
    for (const oldest of this.#reports.values()) {
      if (this.#reports.size <= MAX_INSTANCES || this.#isCurrent(oldest)) return
      this.#reports.delete(oldest.instance)
      this.#ended = addExpositions([this.#ended, oldest.metrics])
    }
  }

  /** The reports of all workers but one, which adds its own. */
  others(instance: string): TelemetryAnswer {
    const others = [...this.#reports.values()].filter((report) => report.instance !== instance)
    const current = others.filter((report) => this.#isCurrent(report))
    const resting: Record<string, number> = {}
    for (const [route, state] of current.flatMap((report) => Object.entries(report.resting))) {
      resting[route] = Math.max(resting[route] ?? 0, state)
    }
    return {
      metrics: [this.#host(), this.#ended, ...others.map(({ metrics }) => metrics)],
      open_requests: current.reduce((sum, report) => sum + report.open_requests, 0),
      resting,
    }
  }

  /** The sums of all workers. */
  total(): string {
    const reported = [...this.#reports.values()].map(({ metrics }) => metrics)
    return addExpositions([this.#host(), this.#ended, ...reported])
  }

  #isCurrent({ at }: { readonly at: number }): boolean {
    return this.#now() - at < CURRENT_MS
  }
}
