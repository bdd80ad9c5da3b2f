import { addExpositions } from '../../protocol/exposition.ts'
import type { TelemetryAnswer, TelemetryReport } from '../../protocol/telemetry.ts'

type Report = Omit<TelemetryReport, 'spans'>

/** How long after its last report a worker's states still count, ms. Its counters always count. */
const CURRENT_MS = 300_000

/** Maximum number of workers, running or ended, that are kept separately; the counters of older ones are summed. */
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
    const [oldest] = this.#reports
    if (this.#reports.size <= MAX_INSTANCES || oldest === undefined) return
    this.#reports.delete(oldest[0])
    this.#ended = addExpositions([this.#ended, oldest[1].metrics])
  }

  /** The reports of all workers but one, which adds its own. */
  others(instance: string): TelemetryAnswer {
    const others = [...this.#reports.values()].filter((report) => report.instance !== instance)
    const current = others.filter(({ at }) => this.#now() - at < CURRENT_MS)
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
}
