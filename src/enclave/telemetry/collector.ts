import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes, type Resource } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace'
import type { ServiceConfig } from '../../protocol/config.ts'
import { readFamilies } from '../../protocol/exposition.ts'
import type { Span } from '../../protocol/telemetry.ts'
import { GenAiMetrics } from './gen-ai-metrics.ts'
import { metricData } from './metric-data.ts'
import { hrTime, readableSpan } from './readable-span.ts'

const SCOPE = { name: 'confidential-model-router' }

/** A collector that metrics and spans are sent to. */
export interface Collector {
  take(span: Span): void
  /** Sends the remaining data and closes. Never rejects. */
  close(): Promise<void>
}

/** The data that is sent to a collector. */
export interface CollectorSource {
  readonly now: () => number
  /** When counting began, ms. */
  readonly startedAt: number
  /** The sum of all workers' metrics, as text. */
  readonly metrics: () => string
}

/** Opens the exporters to a collector: OTLP over HTTP, JSON. */
export function openCollector(
  name: string,
  config: NonNullable<ServiceConfig['telemetry']>,
  source: CollectorSource,
): Collector {
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
            metricProducers: [{ collect: async () => collected(source, resource) }],
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
  return {
    take(span) {
      genAi?.take(span)
      spans?.onEnd(readableSpan(span, resource))
    },
    async close() {
      await Promise.allSettled([meters?.shutdown(), spans?.shutdown()])
    },
  }
}

function collected({ now, startedAt, metrics }: CollectorSource, resource: Resource) {
  const span = { startTime: hrTime(startedAt), endTime: hrTime(now()) }
  const families = readFamilies(metrics()).filter(({ samples }) => samples.size > 0)
  const data = families.map((family) => metricData(family, span))
  return {
    resourceMetrics: { resource, scopeMetrics: [{ scope: SCOPE, metrics: data }] },
    errors: [],
  }
}
