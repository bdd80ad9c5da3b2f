import { SpanKind, SpanStatusCode, TraceFlags, type HrTime } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import type { Span } from '../../protocol/telemetry.ts'

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

/** A worker's span in the exporter's form. */
export function readableSpan(span: Span, resource: Resource): ReadableSpan {
  const context = (spanId: string) => ({
    traceId: span.trace_id,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
  })
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context(span.span_id),
    ...(span.parent_id !== null && { parentSpanContext: context(span.parent_id) }),
    startTime: hrTime(span.start),
    endTime: hrTime(span.end),
    duration: hrTime(span.end - span.start),
    status: { code: span.error ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: span.attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: 'confidential-model-router' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Seconds and nanoseconds of a time in ms. */
export function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), Math.round((ms % 1000) * 1_000_000)]
}
