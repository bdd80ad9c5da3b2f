import { describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { readProviderAnswer } from '../../../src/worker/stream/provider-answer.ts'
import { ApiError, type ErrorCode } from '../../../src/worker/http/errors.ts'
import { messagesFormat } from '../../../src/worker/messages/encoder.ts'
import type { Delta } from '../../../src/worker/stream/delta.ts'
import { API_FORMATS, eventsOf, writtenHere } from '../../support/api-formats.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

/** How a streamed message ends that fails. */

const NOTHING = { reasoning: undefined, refusal: undefined, toolCalls: [], logprobs: null }
const text = (content: string): Delta => ({ ...NOTHING, content })
const thought: Delta = { ...NOTHING, content: undefined, reasoning: 'Hm' }
const call = (index: number, args: string): Delta => ({
  ...NOTHING,
  content: undefined,
  toolCalls: [{ index, id: `call_${index}`, function: { name: 'f', arguments: args } }],
})

/** The events after `message_start` and `ping`, by their types; of the error also its own. */
function ended(deltas: readonly Delta[], code: ErrorCode): string[] {
  const head = { id: 'msg_1', created: 1, model: 'm' }
  const format = messagesFormat({ promptEstimate: 7, stopSequences: [] })
  const writer = format.chunkWriter(head)
  const sent = writer.open() + deltas.map((delta) => writer.delta(delta)).join('')
  const cause = new ApiError(code, 'It broke.')
  const events = eventsOf(sent + format.lastEvents(head).fail(writer.tail, cause))
  return events.slice(2).map(({ type, error }) => (error === undefined ? type : error.type))
}

const [START, DELTA, STOP] = ['start', 'delta', 'stop'].map((word) => `content_block_${word}`)
const OWN = 'incomplete_response_error'

describe('a message that breaks off', () => {
  test.each<[string, readonly Delta[], readonly (string | undefined)[]]>([
    ['a text', [text('half')], [START, DELTA, STOP, OWN]],
    ['thinking', [thought], [START, DELTA, DELTA, STOP, OWN]],
    ['a call, which a client would run', [call(0, '{"a":1}')], [START, DELTA, OWN]],
    [
      'a text before a call',
      [text('half'), call(0, '{}')],
      [START, DELTA, STOP, START, DELTA, OWN],
    ],
    ['a second call, which waits', [call(0, '{}'), call(1, '{}')], [START, DELTA, OWN]],
  ])(
    'in %s ends that block, unless it is a call, with a type of its own',
    (_, deltas, expected) => {
      expect(ended(deltas, 'bad_gateway')).toEqual(expected)
    },
  )

  test.each<[ErrorCode, string]>([
    ['upstream_timeout', OWN],
    ['routes_unavailable', OWN],
    ['service_unavailable', OWN],
    ['internal', OWN],
    ['content_policy_violation', 'invalid_request_error'],
    ['upstream_rate_limit', 'rate_limit_error'],
  ])('for %s ends with %s', (code, type) => {
    expect(ended([text('half')], code).at(-1)).toBe(type)
  })

  test.each<[ErrorCode, string]>([
    ['bad_gateway', 'api_error'],
    ['routes_unavailable', 'overloaded_error'],
    ['upstream_timeout', 'timeout_error'],
  ])('before any output is told as it would be by status: %s is %s', (code, type) => {
    expect(ended([], code)).toEqual([type])
  })
})

describe('an answer that ended at one of the stop sequences', () => {
  const met = (sequence: string) => ({ stop_reason: 'stop_sequence', stop_sequence: sequence })
  const not = (reason: string) => ({ stop_reason: reason, stop_sequence: null })
  const said = { content: 'a' }
  const called = { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }

  test.each<[string, object, string, object, object]>([
    ['as vLLM says it', said, 'stop', { stop_reason: 'END' }, met('END')],
    ['as SGLang says it', said, 'stop', { matched_stop: '"ü"' }, met('"ü"')],
    ['with a reason of its own', said, 'stop_sequence', { stop_reason: 'END' }, met('END')],
    ['that is not named', said, 'stop', { stop_reason: null }, not('end_turn')],
    ['that was a token', said, 'stop', { stop_reason: 128_001 }, not('end_turn')],
    ['that nobody asked for', said, 'stop', { stop_reason: 'SECRET' }, not('end_turn')],
    ['but was cut off', said, 'length', { stop_reason: 'END' }, not('max_tokens')],
    ['after a call, which is to be run', called, 'stop', { stop_reason: 'END' }, not('tool_use')],
  ])('%s, whole and streamed', (_, message, finish_reason, more, expected) => {
    const api = API_FORMATS['messages']
    if (api === undefined) throw new Error('no messages format')
    const end = { finish_reason, ...more }
    const body = { choices: [{ message, ...end }] }
    const answer = runAtOnce(readProviderAnswer(body, OPTIONS))
    expect(api.format.wholeBody(answer, OPTIONS, undefined, {})).toMatchObject(expected)
    const chunks = [{ choices: [{ delta: message }] }, { choices: [{ delta: {}, ...end }] }]
    const stream = chunks.map((chunk) => utf8(`data: ${JSON.stringify(chunk)}\n\n`))
    const events = eventsOf(writtenHere(api.format, stream, OPTIONS))
    expect(events.find(({ type }) => type === 'message_delta').delta).toEqual(expected)
  })

  test.each<[string, string[], boolean]>([
    ['are told to the daemon', ['END', 'ü'.repeat(300)], true],
    ['are not, and it writes no chunks, where no header could hold them', ['ü'.repeat(400)], false],
  ])('%s', (_, stopSequences, told) => {
    const ordered = messagesFormat({ promptEstimate: 7, stopSequences }).chunkFormat(OPTIONS)
    const format = { door: 'messages', prompt_estimate: 7, stop_sequences: stopSequences }
    expect(ordered).toEqual(told ? { format } : undefined)
  })
})
