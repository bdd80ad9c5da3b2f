import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { expect, test } from 'vitest'
import { GenAiMetrics } from '../../../src/enclave/telemetry/gen-ai-metrics.ts'

const OF = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'nova',
  'gen_ai.request.model': 'glm-5',
}

async function measured(...spans: readonly Record<string, string | number>[]) {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  const metrics = new GenAiMetrics(meters.getMeter('test'))
  for (const attributes of spans) metrics.take({ attributes })
  await meters.forceFlush()
  const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
  await meters.shutdown()
  return all.flatMap((scope) =>
    scope.metrics.flatMap((metric) => {
      expect(metric.dataPointType).toBe(DataPointType.HISTOGRAM)
      const { name, unit } = metric.descriptor
      return metric.dataPoints.map(({ attributes, value }) => ({ name, unit, attributes, value }))
    }),
  )
}

const settled = (seconds: number, input: number, output: number, more: object = {}) => ({
  ...OF,
  'gen_ai.usage.input_tokens': input,
  'gen_ai.usage.output_tokens': output,
  'cmr.operation_seconds': seconds,
  ...more,
})

test('settlements become histograms of duration and tokens, by operation, provider, model and type', async () => {
  const points = await measured(settled(0.5, 100, 20), settled(2, 300, 5))
  expect(points).toMatchObject([
    {
      name: 'gen_ai.client.operation.duration',
      unit: 's',
      attributes: OF,
      value: { count: 2, sum: 2.5 },
    },
    {
      name: 'gen_ai.client.token.usage',
      unit: '{token}',
      attributes: { ...OF, 'gen_ai.token.type': 'input' },
      value: { count: 2, sum: 400 },
    },
    {
      name: 'gen_ai.client.token.usage',
      attributes: { ...OF, 'gen_ai.token.type': 'output' },
      value: { count: 2, sum: 25 },
    },
  ])
  const boundaries = points.map(({ value }) => Object(value).buckets.boundaries)
  expect(boundaries[0]).toEqual([
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
  ])
  expect(boundaries[1]).toEqual([
    1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
    67_108_864,
  ])
})

test('nothing else of a span is handed on, though it names the request and the customer', async () => {
  const points = await measured(
    settled(1, 1, 1, { 'cmr.customer_name': 'XNAMEX', 'cmr.request_id': 'XIDX' }),
  )
  expect(points).toHaveLength(3)
  expect(JSON.stringify(points)).not.toMatch(/XNAMEX|XIDX/)
})

test('there is no count of tokens where none were settled, and none of spans that settle nothing', async () => {
  const points = await measured(settled(1, 0, 0), OF)
  expect(points).toMatchObject([
    { name: 'gen_ai.client.operation.duration', value: { count: 1, sum: 1 } },
  ])
})
