import { describe, expect, test } from 'vitest'
import { ApiError, type ErrorCode } from '../../../src/worker/http/errors.ts'
import { messagesFormat } from '../../../src/worker/messages/encoder.ts'
import type { Delta } from '../../../src/worker/stream/delta.ts'
import { eventsOf } from '../../support/doors.ts'

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
  const format = messagesFormat(7)
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
