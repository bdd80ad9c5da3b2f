import type { TelemetryAnswer, TelemetryReport } from '../../protocol/telemetry.ts'
import type { Metrics } from './metrics.ts'
import type { Traces } from './traces.ts'

/** Minimum time between two reports of one worker, ms. */
const REPORT_EVERY_MS = 1_000

export interface TelemetryDeps {
  readonly instance: string
  readonly metrics: Pick<Metrics, 'render'>
  readonly traces: Pick<Traces, 'take'>
  /** The states of this worker as of now. */
  readonly states: () => Pick<TelemetryReport, 'open_requests' | 'resting'>
  readonly send: (report: TelemetryReport) => Promise<TelemetryAnswer>
  readonly pause: (ms: number) => Promise<void>
}

/** Sends this worker's telemetry to the daemon, after answers and never before them. */
export class WorkerTelemetry {
  readonly #deps: TelemetryDeps
  #waiting = false

  constructor(deps: TelemetryDeps) {
    this.#deps = deps
  }

  /** Schedules a report, which includes everything that happens until it is sent. */
  reportSoon(waitUntil: (work: Promise<unknown>) => void): void {
    if (this.#waiting) return
    this.#waiting = true
    waitUntil(this.#report())
  }

  /** Reports now and returns the telemetry of the host's other workers. Never rejects. */
  exchange(): Promise<TelemetryAnswer> {
    const { instance, metrics, traces, states, send } = this.#deps
    return send({ instance, metrics: metrics.render(), ...states(), spans: traces.take() })
  }

  async #report(): Promise<void> {
    await this.#deps.pause(REPORT_EVERY_MS)
    this.#waiting = false
    await this.exchange()
  }
}
