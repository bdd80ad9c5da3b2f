import type { ServiceConfig } from '../../protocol/config.ts'
import type { TelemetryAnswer, TelemetryReport } from '../../protocol/telemetry.ts'
import type { Collector, CollectorSource } from './collector.ts'
import { HostCounts } from './host-counts.ts'
import { WorkerReports } from './worker-reports.ts'

/** The router's name for the collector, and the collector's settings. */
type Configured = Pick<ServiceConfig, 'name' | 'telemetry'>

/**
 * The telemetry of this host's workers: summed, so that scraping any worker returns the data of all, and sent to a
 * collector where one is configured. If the collector does not answer, only its data is lost.
 */
export class Telemetry {
  /** Events that are counted in the daemon instead of in a worker. */
  readonly host = new HostCounts()
  readonly #reports: WorkerReports
  readonly #source: CollectorSource
  #collector: Collector | undefined
  #configured = ''

  private constructor(now: () => number) {
    const reports = new WorkerReports(now, () => this.host.render())
    this.#reports = reports
    this.#source = { now, startedAt: now(), metrics: () => reports.total() }
  }

  static async open(now: () => number, service: Configured): Promise<Telemetry> {
    const telemetry = new Telemetry(now)
    const configure = await telemetry.prepare(service)
    configure()
    return telemetry
  }

  /** Takes a worker's report and returns what the others reported. */
  exchange({ spans, ...report }: TelemetryReport): TelemetryAnswer {
    this.#reports.take(report)
    for (const span of spans) this.#collector?.take(span)
    return this.#reports.others(report.instance)
  }

  /**
   * Loads what this configuration needs. OpenTelemetry takes several MiB, so it is loaded only where there is a
   * collector.
   * @returns a function that switches to the collector of this configuration, if it has one
   */
  async prepare({ name, telemetry }: Configured): Promise<() => void> {
    const configured = JSON.stringify([name, telemetry])
    const open =
      telemetry === undefined ? undefined : (await import('./collector.ts')).openCollector
    return () => {
      if (configured === this.#configured) return
      this.#configured = configured
      void this.close()
      this.#collector = telemetry && open?.(name, telemetry, this.#source)
    }
  }

  /** Sends the remaining data and closes. Never rejects. */
  async close(): Promise<void> {
    const collector = this.#collector
    this.#collector = undefined
    await collector?.close()
  }
}
