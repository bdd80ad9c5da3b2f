import { describe, expect, test } from 'vitest'
import type { LoggedEvent } from '../../../src/worker/http/event-log.ts'
import { spanSchema } from '../../../src/protocol/telemetry.ts'
import { Traces } from '../../../src/worker/metrics/traces.ts'
import { loggingTo } from '../../support/logging-to.ts'

const ID = '0193a5d2-1111-4222-8333-444455556666'
const CALLER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function traced(traceparent: string | null) {
  let now = 1_000
  const traces = new Traces(() => now)
  traces.begin(ID, traceparent)
  const noted = loggingTo(traces.note, () => now)
  now = 1_100
  noted('attempt_failed', { request_id: ID, route: 'eu/nova/a', attempt: 1, failure: 'timeout' })
  now = 1_300
  noted('attempt_served', { request_id: ID, route: 'eu/vela/a', attempt: 2, first_delta_ms: 90 })
  noted('request', { request_id: ID, method: 'POST', endpoint: 'chat', status: 200 })
  now = 1_400
  const tokens = { prompt_tokens: 7, completion_tokens: 5 }
  noted('settled', { request_id: ID, route: 'eu/vela/a', modality: 'chat', ...tokens })
  noted('settled', { request_id: ID, route: 'eu/vela/a' })
  noted('request', { request_id: 'of another', status: 200 })
  return traces.take()
}

describe('the spans of a request', () => {
  test('belong to the trace of the caller, each step below the request', () => {
    const spans = traced(CALLER)
    expect(spans.map((span) => spanSchema.parse(span))).toEqual(spans)
    expect(new Set(spans.map(({ trace_id }) => trace_id))).toEqual(
      new Set(['0af7651916cd43dd8448eb211c80319c']),
    )
    const server = spans.find(({ kind }) => kind === 'server')
    expect(server).toMatchObject({
      name: 'POST chat',
      parent_id: 'b7ad6b7169203331',
      start: 1_000,
      end: 1_300,
    })
    const children = spans.filter(({ kind }) => kind !== 'server')
    expect(children.map(({ parent_id }) => parent_id)).toEqual(children.map(() => server?.span_id))
    expect(new Set(spans.map(({ span_id }) => span_id)).size).toBe(4)
    expect(children.map(({ name, start, end, error }) => [name, start, end, error])).toEqual([
      ['attempt a', 1_000, 1_100, true],
      ['attempt a', 1_100, 1_300, false],
      ['settle', 1_300, 1_400, false],
    ])
    expect(children.map(({ attributes }) => attributes)).toMatchObject([
      { 'gen_ai.provider.name': 'nova', 'gen_ai.request.model': 'a', 'error.type': 'timeout' },
      { 'gen_ai.provider.name': 'vela', 'gen_ai.response.time_to_first_chunk': 0.09 },
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'vela',
        'gen_ai.request.model': 'a',
        'gen_ai.usage.input_tokens': 7,
        'gen_ai.usage.output_tokens': 5,
        'cmr.operation_seconds': 0.3,
      },
    ])
  })

  test.each([
    null,
    '',
    'nonsense',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01',
  ])('begin a trace of their own where the caller’s is %j', (traceparent) => {
    const [first] = traced(traceparent).filter(({ kind }) => kind === 'server')
    expect(first).toMatchObject({ trace_id: ID.replaceAll('-', ''), parent_id: null })
  })

  test('have the name of the customer if the operator enables it, cut to the limit of a span', () => {
    const traces = new Traces(() => 0)
    const other = ID.replace('0193', '0194')
    const settled = (id: string) => {
      loggingTo(traces.note)('settled', { request_id: id, route: 'nova/a' })
      return traces.take().map(({ attributes }) => attributes['cmr.customer_name'])
    }
    traces.begin(ID, CALLER)
    traces.begin(other, CALLER)
    traces.nameCustomer(ID, 'n'.repeat(400))
    traces.nameCustomer('unknown', 'nobody')
    expect(settled(ID)).toEqual(['n'.repeat(256)])
    expect(settled(other)).toEqual([undefined])
  })

  test('are all there for an answer that is settled before it is sent', () => {
    const traces = new Traces(() => 0)
    const note = loggingTo(traces.note)
    traces.begin(ID, CALLER)
    note('attempt_served', { request_id: ID, route: 'nova/a', attempt: 1 })
    note('settled', { request_id: ID, route: 'nova/a', modality: 'embedding' })
    note('request', { request_id: ID, method: 'POST', endpoint: 'chat', status: 200 })
    note('request', { request_id: ID, status: 200 })
    const spans = traces.take()
    expect(spans.map(({ name }) => name)).toEqual(['attempt a', 'settle', 'POST chat'])
    expect(spans[1]?.attributes['gen_ai.operation.name']).toBe('embeddings')
  })

  test('are taken with what was logged before, and last for as long as that took', () => {
    let now = 1_000
    const log: LoggedEvent[] = []
    const traces: Traces = new Traces(
      () => now,
      () => traces.note(log.splice(0)),
    )
    traces.begin(ID, CALLER)
    log.push({ event: 'request', fields: { request_id: ID, status: 200 }, at: 1_200 })
    now = 5_000
    expect(traces.take()).toMatchObject([{ start: 1_000, end: 1_200 }])
    expect(traces.take()).toEqual([])
  })

  test('are not gathered beyond a bound', () => {
    const traces = new Traces(() => 0)
    for (let index = 0; index < 3_000; index++) {
      traces.begin(`r${index}`, CALLER)
      loggingTo(traces.note)('request', { request_id: `r${index}`, status: 200 })
    }
    expect(traces.take()).toHaveLength(2_000)
    expect(traces.take()).toEqual([])
  })
})
