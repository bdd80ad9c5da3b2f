import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import type { AnswerStream } from '../../../src/worker/stream/answer-stream.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import { API_FORMATS, eventsOf } from '../../support/api-formats.ts'
import { OPTIONS, chunksOf, createChatStream } from '../../support/golden-streams.ts'

function event(choice: object): string {
  return `data: ${JSON.stringify({ id: 'p', choices: [{ index: 0, ...choice }] })}\n\n`
}

const ROLE = event({ delta: { role: 'assistant', content: '' } })
const TEXT = event({ delta: { content: 'a' } })

function started(...events: readonly string[]): AnswerStream {
  const stream = createChatStream(OPTIONS)
  for (const text of events) stream.push(utf8(text))
  return stream
}

function push(stream: AnswerStream, text: string): string {
  return fromUtf8(stream.push(utf8(text)))
}

function reasonOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof BrokenStream) return error.reason
    throw error
  }
  return expect.unreachable()
}

describe('a call in the form that preceded tool calls', () => {
  const called = { name: 'f', arguments: '{}' }
  const older = event({ delta: { function_call: called } })
  const newer = event({ delta: { tool_calls: [{ index: 0, id: 'c', function: called }] } })
  const end = event({ delta: {}, finish_reason: 'function_call' })

  test('that has only its defaults, beside a text, is none', () => {
    const delta = { content: 'a', function_call: { name: '', arguments: '{}' } }
    const text = fromUtf8(createChatStream(OPTIONS).push(utf8(event({ delta }))))
    expect(text).toContain('"content":"a"')
    expect(text).not.toContain('tool_calls')
  })

  test.each([
    ['before it', [newer, older], 'function_call'],
    ['after it', [older, newer], 'tool_calls'],
  ])('is passed on once where a copy of it comes %s', (_, calls, reason) => {
    const stream = createChatStream(OPTIONS)
    const text = [...calls, end].map((one) => fromUtf8(stream.push(utf8(one)))).join('')
    const fragments = chunksOf(text + fromUtf8(stream.close({}))).flatMap(({ choices }) => choices)
    expect(JSON.stringify(fragments).match(/"arguments":"\{\}"/g)).toHaveLength(1)
    expect(stream.finishReason).toBe(reason)
  })
})

describe('a tool call without a name', () => {
  const fragment = (part: object, more: object = {}) =>
    event({ delta: { tool_calls: [{ index: 0, ...more, function: part }] } })
  const FINISH_CALLS = event({ delta: {}, finish_reason: 'tool_calls' })
  const first = fragment({ arguments: '{"a"' }, { id: 'c' })

  test('waits for it, with its arguments, before the commit point', () => {
    const stream = started(ROLE, first)
    expect(stream.committed).toBe(false)
    const text =
      push(stream, fragment({ name: 'f', arguments: ':1' })) +
      push(stream, fragment({ arguments: '}' }))
    const calls = chunksOf(text).flatMap(({ choices }) => choices)
    expect(calls.slice(1)).toMatchObject([
      {
        delta: {
          tool_calls: [
            { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1' } },
          ],
        },
      },
      { delta: { tool_calls: [{ index: 0, function: { arguments: '}' } }] } },
    ])
    stream.push(utf8(FINISH_CALLS))
    expect(stream.finishReason).toBe('tool_calls')
  })

  test.each([
    ['another id', fragment({ name: 'f' }, { id: 'd' })],
    ['neither index nor id', event({ delta: { tool_calls: [{ function: { name: 'f' } }] } })],
  ])('takes one that comes with %s', (_, named) => {
    const stream = started(first)
    const [, call] = chunksOf(push(stream, named)).flatMap(({ choices }) => choices)
    expect(call).toMatchObject({
      delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{"a"' } }] },
    })
    expect(started(first, named, FINISH_CALLS).finishReason).toBe('tool_calls')
  })

  test.each([
    ['the list', first],
    ['the older form', event({ delta: { function_call: { arguments: '{"a"' } } })],
  ])('is malformed at the finish reason, in %s', (_, call) => {
    const stream = started(ROLE, call)
    const reason = reasonOf(() => stream.push(utf8(FINISH_CALLS)))
    expect([reason, stream.committed]).toEqual(['malformed', false])
    expect(reasonOf(() => started(TEXT, call, FINISH_CALLS))).toBe('malformed')
  })
})

describe('a tool call without arguments', () => {
  const called = (args: string | null | undefined, index = 0) =>
    event({
      delta: { tool_calls: [{ index, id: `c${index}`, function: { name: 'f', arguments: args } }] },
    })
  const more = (args: string) =>
    event({ delta: { tool_calls: [{ index: 0, function: { arguments: args } }] } })
  const end = (reason: string) => event({ delta: {}, finish_reason: reason })

  /** The arguments of each call, put together as clients do. */
  function argumentsIn(...events: readonly string[]): string[] {
    const stream = createChatStream(OPTIONS)
    const text = events.map((one) => push(stream, one)).join('')
    const { calls = [] } = API_FORMATS['chat']?.readStream(eventsOf(text)) ?? {}
    return calls.map((call) => call.arguments)
  }

  test.each([null, '', undefined])(
    'gets an empty object of them with the finish reason, because clients parse them as JSON: %j',
    (args) => {
      expect(argumentsIn(called(args), called('{"a":1}', 1), end('tool_calls'))).toEqual([
        '{}',
        '{"a":1}',
      ])
      expect(argumentsIn(called(args), end('stop'))).toEqual(['{}'])
      expect(argumentsIn(called(args), more('{"a":'), more('1}'), end('stop'))).toEqual(['{"a":1}'])
    },
  )

  test('in the older form, too, and one whose arguments came before its name has those', () => {
    const older = event({ delta: { function_call: { name: 'f' } } })
    expect(argumentsIn(older, end('function_call'))).toEqual(['{}'])
    const named = event({ delta: { tool_calls: [{ index: 0, function: { name: 'f' } }] } })
    expect(argumentsIn(more('{"a":1}'), named, end('stop'))).toEqual(['{"a":1}'])
  })

  test.each(['length', 'max_tokens', 'content_filter'])(
    'gets none where the answer was cut off (%s): it may be that they were to come',
    (reason) => {
      expect(argumentsIn(called(''), end(reason))).toEqual([''])
    },
  )
})
