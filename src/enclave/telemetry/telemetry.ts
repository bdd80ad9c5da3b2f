import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes, type Resource } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace'
import type { ServiceConfig } from '../../protocol/config.ts'
import { readFamilies } from '../../protocol/exposition.ts'
import type { TelemetryAnswer, TelemetryReport } from '../../protocol/telemetry.ts'
import { GenAiMetrics } from './gen-ai-metrics.ts'
import { metricData } from './metric-data.ts'
import { hrTime, readableSpan } from './readable-span.ts'
import { WorkerReports } from './worker-reports.ts'

type Config = NonNullable<ServiceConfig['telemetry']>

/** The exporters of a configured collector. */
interface Export {
  readonly meters: MeterProvider | undefined
  readonly genAi: GenAiMetrics | undefined
  readonly spans: BatchSpanProcessor | undefined
  readonly resource: Resource
}

const SCOPE = { name: 'confidential-model-router' }

/**
 * The telemetry of this host's workers: summed, so that scraping any worker returns all of it, and sent to a collector
 * (OTLP over HTTP, JSON) where one is configured. If the collector does not answer, only its data is lost.
 */
export class Telemetry {
  readonly #now: () => number
  readonly #startedAt: number
  readonly #reports: WorkerReports
  #export: Export | undefined
  #configured = ''

  constructor(now: () => number, service: Pick<ServiceConfig, 'name' | 'telemetry'>) {
    this.#now = now
    this.#startedAt = now()
    this.#reports = new WorkerReports(now)
    this.configure(service)
  }

  /** Takes a worker's report and returns what the others reported. */
  exchange({ spans, ...report }: TelemetryReport): TelemetryAnswer {
    this.#reports.take(report)
    const { spans: processor, genAi, resource } = this.#export ?? {}
    for (const span of spans) {
      genAi?.take(span)
      if (processor && resource) processor.onEnd(readableSpan(span, resource))
    }
    return this.#reports.others(report.instance)
  }

  /** Switches to the collector of this configuration, if it has one. */
  configure({ name, telemetry }: Pick<ServiceConfig, 'name' | 'telemetry'>): void {
    const configured = JSON.stringify([name, telemetry])
    if (configured === this.#configured) return
    this.#configured = configured
    void this.close()
    this.#export = telemetry === undefined ? undefined : this.#open(name, telemetry)
  }

  /** Sends the remaining data and closes. Never rejects. */
  async close(): Promise<void> {
    const { meters, spans } = this.#export ?? {}
    this.#export = undefined
    await Promise.allSettled([meters?.shutdown(), spans?.shutdown()])
  }

  #open(name: string, config: Config): Export {
    const resource = resourceFromAttributes({ 'service.name': name })
    const everyMs = config.interval_seconds * 1000
    const url = (path: string) => `${config.otlp_endpoint.replace(/\/+$/, '')}${path}`
    const timeoutMillis = Math.min(10_000, everyMs)
    const meters = config.metrics
      ? new MeterProvider({
          resource,
          readers: [
            new PeriodicExportingMetricReader({
              exporter: new OTLPMetricExporter({ url: url('/v1/metrics'), timeoutMillis }),
              exportIntervalMillis: everyMs,
              exportTimeoutMillis: timeoutMillis,
              metricProducers: [{ collect: () => this.#collect(resource) }],
            }),
          ],
        })
      : undefined
    const spans = config.traces
      ? new BatchSpanProcessor({
          exporter: new OTLPTraceExporter({ url: url('/v1/traces'), timeoutMillis }),
          scheduledDelayMillis: Math.min(5_000, everyMs),
        })
      : undefined
    const genAi = meters && new GenAiMetrics(meters.getMeter(SCOPE.name))
    return { meters, genAi, spans, resource }
  }

  async #collect(resource: Resource) {
    const span = { startTime: hrTime(this.#startedAt), endTime: hrTime(this.#now()) }
    const families = readFamilies(this.#reports.total()).filter(({ samples }) => samples.size > 0)
    const metrics = families.map((family) => metricData(family, span))
    return { resourceMetrics: { resource, scopeMetrics: [{ scope: SCOPE, metrics }] }, errors: [] }
  }
}
