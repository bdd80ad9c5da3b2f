import { ValueType, type Attributes, type HrTime } from '@opentelemetry/api'
import {
  AggregationTemporality,
  DataPointType,
  type DataPoint,
  type Histogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics'
import type { MetricFamily } from '../../protocol/exposition.ts'

/** Names from OpenTelemetry's conventions for generative models; other metrics keep their own names. */
const OWN_NAMES: Readonly<Record<string, string>> = {
  cmr_first_delta_seconds: 'gen_ai.client.operation.time_to_first_chunk',
}

/** `name_suffix{labels}`. */
const SAMPLE = /^([^{]+?)(_bucket|_sum|_count)?(?:\{(.*)\})?$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g

interface Span {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

/** A metric family in OpenTelemetry's data model. */
export function metricData(family: MetricFamily, span: Span): MetricData {
  const descriptor = {
    name: OWN_NAMES[family.name] ?? family.name,
    description: family.help,
    unit: family.name.endsWith('_seconds') ? 's' : '1',
    valueType: ValueType.DOUBLE,
  }
  const shared = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE }
  if (family.kind === 'histogram') {
    return {
      ...shared,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: histograms(family, span),
    }
  }
  const dataPoints = [...family.samples].map(([key, value]) => {
    return { ...span, attributes: attributesOf(SAMPLE.exec(key)?.[3] ?? ''), value }
  })
  return { ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
}

function histograms({ samples }: MetricFamily, span: Span): DataPoint<Histogram>[] {
  const series = new Map<string, { cumulative: [number, number][]; sum: number; count: number }>()
  for (const [key, value] of samples) {
    const [, , part, labels = ''] = SAMPLE.exec(key) ?? []
    const { le, ...rest } = labelsOf(labels)
    const name = JSON.stringify(rest)
    const one = series.get(name) ?? { cumulative: [], sum: 0, count: 0 }
    series.set(name, one)
    if (part === '_bucket') one.cumulative.push([Number(le === '+Inf' ? Infinity : le), value])
    else if (part === '_sum') one.sum = value
    else one.count = value
  }
  return [...series].map(([name, { cumulative, sum, count }]) => {
    const labels: Record<string, string> = JSON.parse(name)
    const counts = cumulative.map(([, below], index) => below - (cumulative[index - 1]?.[1] ?? 0))
    const boundaries = cumulative.map(([bound]) => bound).filter(Number.isFinite)
    return {
      ...span,
      attributes: withModel(labels),
      value: { buckets: { boundaries, counts }, sum, count },
    }
  })
}

function attributesOf(labels: string): Attributes {
  return withModel(labelsOf(labels))
}

function labelsOf(text: string): Record<string, string> {
  const pairs = [...text.matchAll(LABEL)].map(([, name = '', value = '']) => {
    return [name, value.replaceAll(/\\(.)/g, (_all, sign: string) => (sign === 'n' ? '\n' : sign))]
  })
  return Object.fromEntries(pairs)
}

/** A route's name ends in its provider and its model. */
function withModel(labels: Readonly<Record<string, string>>): Attributes {
  const [provider, model] = labels['route']?.split('/').slice(-2) ?? []
  if (provider === undefined || model === undefined) return labels
  return { ...labels, 'gen_ai.provider.name': provider, 'gen_ai.request.model': model }
}
