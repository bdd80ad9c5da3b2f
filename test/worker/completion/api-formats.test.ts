import { describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { responseDigest } from '../../../src/verify/response-digest.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { NOTHING_WRITTEN } from '../../../src/worker/stream/encoder.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { parseJsonObject } from '../../../src/worker/stream/json-object.ts'
import { readProviderAnswer } from '../../../src/worker/stream/provider-answer.ts'
import {
  API_FORMATS,
  eventsOf,
  writtenHere,
  type Reading,
  type ReadableApi,
} from '../../support/api-formats.ts'
import { OPTIONS, SERVICE, goldenStreams, providerBytes } from '../../support/golden-streams.ts'
import { frame, streamOf, toolDelta } from '../../support/provider-frames.ts'

/** Every recorded provider stream through every format: what a client can read must be the same. */

const CHAT = API_FORMATS['chat']
if (CHAT === undefined) throw new Error('no chat format')
const OTHERS = Object.entries(API_FORMATS).filter(([name]) => name !== 'chat')

/** The text that a format sends for provider bytes that come in these reads. */
function sent({ format }: ReadableApi, reads: readonly Uint8Array[], options = OPTIONS): string {
  return writtenHere(format, reads, options)
}

/** An empty call is an empty object in the formats whose clients parse it at once. */
function comparable({ calls, ...texts }: Reading): Reading {
  return { ...texts, calls: calls.map((call) => ({ ...call, arguments: call.arguments || '{}' })) }
}

describe.each(Object.entries(API_FORMATS))('%s', (_, api) => {
  test.each(goldenStreams())(
    '$provider: $name ($file) has a last event that a verifier accepts',
    async (golden) => {
      const whole = sent(api, [providerBytes(golden)], { ...OPTIONS, ...golden.options })
      const events = whole.split(/(?<=\n\n)/)
      const end = events.findIndex((event) => event.includes(JSON.stringify(SERVICE)))
      const signed = end === -1 ? whole : events.slice(0, end).join('')
      expect(end === -1).toBe('broken' in golden.outcome)
      expect(await responseDigest(utf8(whole))).toBe(await sha256Hex(signed))
    },
  )
})

describe.each(OTHERS)('%s', (_, api) => {
  describe.each(goldenStreams())('$provider: $name ($file)', (golden) => {
    const options = { ...OPTIONS, ...golden.options }
    const bytes = providerBytes(golden)
    const whole = sent(api, [bytes], options)

    test('text, reasoning and tool calls are those of Chat Completions', () => {
      const chat = CHAT.readStream(eventsOf(sent(CHAT, [bytes], options)))
      // A call that waits for its turn when a stream breaks is lost with it; no client runs half a call.
      const lost = 'broken' in golden.outcome ? { calls: [] } : {}
      const reading = api.readStream(eventsOf(whole))
      expect({ ...reading, ...lost }).toEqual({ ...comparable(chat), ...lost })
    })

    // test/worker/stream/golden.test.ts cuts at every byte what all API formats read.
    test('a cut at every fifth byte changes nothing', () => {
      const cuts = Array.from({ length: bytes.length / 5 + 1 }, (_gap, nth) => 5 * nth)
      const different = cuts.filter(
        (cut) => sent(api, [bytes.subarray(0, cut), bytes.subarray(cut)], options) !== whole,
      )
      expect(different).toEqual([])
    })
  })

  test('fragments of calls that interleave, and text among them, come out whole', () => {
    const more = (index: number, args: string) => ({
      tool_calls: [{ index, function: { arguments: args } }],
    })
    const deltas = [
      { reasoning: 'Hm' },
      { content: 'a' },
      toolDelta(0, 'f', '{"x":'),
      toolDelta(1, 'g', '{"y":'),
      { content: 'b' },
      more(0, '1}'),
      more(1, '2}'),
      toolDelta(2, 'h', ''),
    ]
    const bytes = utf8(streamOf(deltas, 'tool_calls').join(''))
    expect(api.readStream(eventsOf(sent(api, [bytes])))).toEqual({
      reasoning: 'Hm',
      text: 'ab',
      calls: [
        { id: 'call_0', name: 'f', arguments: '{"x":1}' },
        { id: 'call_1', name: 'g', arguments: '{"y":2}' },
        { id: 'call_2', name: 'h', arguments: '{}' },
      ],
    })
  })

  test('an answer that is not streamed has the content of the chat answer', () => {
    const call = (id: string, args: string) => ({ id, function: { name: 'f', arguments: args } })
    const messages = [
      { content: 'a "quoted" é' },
      { content: '', reasoning: 'Hm', tool_calls: [call('1', '{"a":1}'), call('2', '{}')] },
      { content: null, refusal: 'No.' },
      { content: 'both', reasoning: 'Hm', tool_calls: [call('1', '{"b":[1,2]}')] },
    ]
    for (const message of messages) {
      const body = JSON.stringify({ choices: [{ message, finish_reason: 'stop' }] })
      const answer = runAtOnce(readProviderAnswer(parseJsonObject(body), OPTIONS))
      const read = ({ format, readWhole }: ReadableApi) =>
        readWhole(JSON.parse(JSON.stringify(format.wholeBody(answer, OPTIONS, undefined, SERVICE))))
      expect(read(api)).toEqual(read(CHAT))
    }
  })

  test('`service` is in the last event alone, which ends the stream', () => {
    const bytes = utf8(streamOf([{ content: 'a' }]).join(''))
    const events = eventsOf(sent(api, [bytes]))
    expect(events.map((event) => 'service' in event).indexOf(true)).toBe(events.length - 1)
  })

  test('a failure before anything was sent is reported in complete events', () => {
    const error = new ApiError('routes_unavailable', 'No route.')
    const events = eventsOf(api.format.lastEvents(OPTIONS).fail(NOTHING_WRITTEN, error))
    expect(JSON.stringify(events.at(-1))).toContain('No route.')
  })

  test('the text of a frame that says nothing else costs no parsing, and reads the same', () => {
    const texts = ['a', 'b', '"', 'ü', '\\', 'c']
    const bytes = utf8([...texts.map((content) => frame({ content })), ...streamOf([])].join(''))
    expect(api.readStream(eventsOf(sent(api, [bytes]))).text).toBe(texts.join(''))
  })
})

test('the Responses format sends only events that its client libraries know, in unbroken order', () => {
  const api = API_FORMATS['responses']
  if (api === undefined) throw new Error('no such format')
  for (const golden of goldenStreams()) {
    const events = eventsOf(sent(api, [providerBytes(golden)]))
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    for (const { type } of events) expect(KNOWN_EVENTS).toContain(type)
    expect(events.at(-1)?.type).toMatch(/^response\.(completed|incomplete|failed)$/)
  }
})

const KNOWN_EVENTS = [
  'response.created',
  'response.in_progress',
  'response.output_item.added',
  'response.content_part.added',
  'response.output_text.delta',
  'response.output_text.done',
  'response.refusal.delta',
  'response.refusal.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_part.done',
  'response.reasoning_summary_text.delta',
  'response.reasoning_summary_text.done',
  'response.function_call_arguments.delta',
  'response.function_call_arguments.done',
  'response.custom_tool_call_input.delta',
  'response.custom_tool_call_input.done',
  'response.content_part.done',
  'response.output_item.done',
  'response.completed',
  'response.incomplete',
  'response.failed',
]

test('a failure whose tail only a lost daemon knew is the last in order, and ends no block', () => {
  const failed = (name: string) => {
    const last = API_FORMATS[name]?.format.lastEvents(OPTIONS)
    return eventsOf(last?.fail(undefined, new ApiError('bad_gateway', 'It broke.')) ?? '')
  }
  expect(failed('responses')).toMatchObject([
    { type: 'response.failed', sequence_number: 2_147_483_647, response: { output: [] } },
  ])
  expect(failed('messages')).toEqual([
    { type: 'error', error: { type: 'incomplete_response_error', message: 'It broke.' } },
  ])
})
