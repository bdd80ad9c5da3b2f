import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sound } from '../faults/answers.ts'
import { ask, PROMPT } from '../faults/ask.ts'
import { openWorld, type World } from '../faults/world.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/stack.ts'

/** What a collector of OpenTelemetry gets of the real stack. */

const received: { readonly path: string; readonly body: string }[] = []
let collector: Server
let world: World

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  received.push({ path: request.url ?? '', body: await text(request) })
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
}

beforeAll(async () => {
  collector = createServer((request, response) => {
    void take(request, response)
  })
  const port = await listen(collector)
  world = await openWorld([{ model: 'sound', at: 'alpha', script: sound }], {
    service: { telemetry: { otlp_endpoint: `http://127.0.0.1:${port}`, interval_seconds: 1 } },
  })
}, 120_000)
afterAll(async () => {
  await world.close()
  collector.closeAllConnections()
  collector.close()
})

const attribute = z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) })
const spansSchema = z.object({
  resourceSpans: z.array(
    z.object({
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.looseObject({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              name: z.string(),
              attributes: z.array(attribute),
            }),
          ),
        }),
      ),
    }),
  ),
})
const metricsSchema = z.object({
  resourceMetrics: z.array(
    z.object({
      scopeMetrics: z.array(z.object({ metrics: z.array(z.looseObject({ name: z.string() })) })),
    }),
  ),
})

const bodies = (path: string) => received.filter((one) => one.path === path).map(({ body }) => body)

const spans = () =>
  bodies('/v1/traces')
    .flatMap((body) => spansSchema.parse(JSON.parse(body)).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))

const exported = () =>
  bodies('/v1/metrics')
    .flatMap((body) => metricsSchema.parse(JSON.parse(body)).resourceMetrics)
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
const metricNames = () => exported().map(({ name }) => name)

const pointsSchema = z.object({
  dataPoints: z.array(
    z.object({ count: z.number(), sum: z.number(), attributes: z.array(attribute) }),
  ),
})

/** The attributes of a histogram's measurements, where there is one. */
function measuredBy(name: string): readonly Record<string, unknown>[] {
  const last = exported().findLast((metric) => metric.name === name)
  if (last === undefined) return []
  const { dataPoints } = pointsSchema.parse(last['histogram'])
  expect(dataPoints.every(({ count, sum }) => count > 0 && sum > 0)).toBe(true)
  return dataPoints.map(({ attributes }) =>
    Object.fromEntries(attributes.map(({ key, value }) => [key, value['stringValue']])),
  )
}

test('a collector gets the trace of the caller and the metrics, no content and no names', async () => {
  const customer = await world.newCustomer({ name: 'XCUSTOMERNAMEX' })
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: 'vendor=1' }
  const heard = await ask(world, customer, { model: 'sound', stream: true, headers })
  expect(heard.words).toBe('200 stop "Hello from the first."')
  await until(() => spans().filter((span) => span.traceId === traceId).length >= 3)
  const mine = spans().filter((span) => span.traceId === traceId)
  const server = mine.find(({ name }) => name === 'POST chat')
  expect(server?.parentSpanId).toBe('b7ad6b7169203331')
  expect(mine.map(({ name }) => name).toSorted()).toEqual(['POST chat', 'attempt sound', 'settle'])
  expect(mine.filter(({ parentSpanId }) => parentSpanId === server?.spanId)).toHaveLength(2)
  await until(() => metricNames().includes('gen_ai.client.operation.time_to_first_chunk'))
  expect(metricNames()).toContain('cmr_requests_total')
  const of = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'alpha',
    'gen_ai.request.model': 'sound',
  }
  await until(() => measuredBy('gen_ai.client.token.usage').length === 2)
  expect(measuredBy('gen_ai.client.operation.duration')).toEqual([of])
  expect(measuredBy('gen_ai.client.token.usage')).toEqual([
    { ...of, 'gen_ai.token.type': 'input' },
    { ...of, 'gen_ai.token.type': 'output' },
  ])
  const everything = JSON.stringify(received)
  for (const secret of [PROMPT, 'Hello from', 'XCUSTOMERNAMEX', customer.key, customer.id]) {
    expect(everything).not.toContain(secret)
  }
  const [call] = world.provider.calls('sound')
  expect(call?.headers.toLowerCase()).not.toMatch(/^(traceparent|tracestate):/m)
})

test('a scrape counts what every worker of the host has counted', async () => {
  const admin = { authorization: `Bearer ${world.stack.local.admin_token}` }
  const scrape = async () => (await world.stack.fetch('/admin/metrics', { headers: admin })).text()
  const total = (metrics: string) =>
    [...metrics.matchAll(/^cmr_requests_total\{.*\} (\d+)$/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    )
  const before = total(await scrape())
  await world.stack.fetch('/v1/models')
  expect(total(await scrape())).toBeGreaterThan(before)
})

test('the customer is named in spans only where the operator asks for that', async () => {
  const { port } = z.object({ port: z.int() }).parse(collector.address())
  const asked = await openWorld([{ model: 'sound', at: 'alpha', script: sound }], {
    service: {
      telemetry: {
        otlp_endpoint: `http://127.0.0.1:${port}`,
        interval_seconds: 1,
        customer_names: true,
      },
    },
  })
  try {
    const customer = await asked.newCustomer({ name: 'XNAMEDX' })
    const traceId = '1af7651916cd43dd8448eb211c80319c'
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    await ask(asked, customer, { model: 'sound', stream: false, headers })
    await until(() => spans().some((span) => span.traceId === traceId && span.name === 'settle'))
    await until(() => spans().some((span) => span.traceId === traceId && span.name === 'POST chat'))
    const settle = spans().find((span) => span.traceId === traceId && span.name === 'settle')
    expect(settle?.attributes).toContainEqual({
      key: 'cmr.customer_name',
      value: { stringValue: 'XNAMEDX' },
    })
    expect(JSON.stringify(received)).not.toContain(customer.id)
    expect(bodies('/v1/metrics').join()).not.toContain('XNAMEDX')
  } finally {
    await asked.close()
  }
}, 60_000)
