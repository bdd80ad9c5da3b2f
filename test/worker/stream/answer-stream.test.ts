import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import type { AnswerStream } from '../../../src/worker/stream/answer-stream.ts'
import { MAX_OPENING_BYTES } from '../../../src/worker/stream/provider-stream.ts'
import { OPTIONS, chunksOf, createChatStream } from '../../support/golden-streams.ts'

function event(choice: object, more: object = {}): string {
  return `data: ${JSON.stringify({ id: 'p', choices: [{ index: 0, ...choice }], ...more })}\n\n`
}

const ROLE = event({ delta: { role: 'assistant', content: '' } })
const TEXT = event({ delta: { content: 'a' } })
const FINISH = event({ delta: {}, finish_reason: 'stop' })
const USAGE = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n`
const DONE = 'data: [DONE]\n\n'

function started(...events: readonly string[]): AnswerStream {
  const stream = createChatStream(OPTIONS)
  for (const text of events) stream.push(utf8(text))
  return stream
}

function push(stream: AnswerStream, text: string): string {
  return fromUtf8(stream.push(utf8(text)))
}

function brokenBy(run: () => unknown): BrokenStream {
  try {
    run()
  } catch (error) {
    if (error instanceof BrokenStream) return error
    throw error
  }
  return expect.unreachable()
}

describe('the commit point', () => {
  test.each([
    ['content', { delta: { content: 'a' } }],
    ['reasoning', { delta: { reasoning: 'a' } }],
    ['reasoning under its older name', { delta: { reasoning_content: 'a' } }],
    ['a tool call', { delta: { tool_calls: [{ index: 0, function: { name: 'f' } }] } }],
    ['a refusal', { delta: { refusal: 'a' } }],
    ['a finish reason', { delta: {}, finish_reason: 'length' }],
  ])('%s commits, and the role goes out first', (_, choice) => {
    const stream = started(ROLE)
    expect(stream.committed).toBe(false)
    const [first] = chunksOf(push(stream, event(choice)))
    expect(stream.committed).toBe(true)
    expect(first?.['choices']).toEqual([
      {
        index: 0,
        delta: { role: 'assistant', content: '' },
        finish_reason: null,
      },
    ])
  })

  test.each([
    ['a role', { delta: { role: 'assistant' } }],
    ['empty texts', { delta: { content: '', reasoning: '', refusal: '', tool_calls: [] } }],
    ['a null delta', { delta: null, finish_reason: null }],
    ['another choice', { index: 1, delta: { content: 'b' } }],
    ['log probabilities without text', { delta: {}, logprobs: { content: [] } }],
  ])('%s does not commit, and nothing goes out', (_, choice) => {
    const stream = createChatStream(OPTIONS)
    expect(push(stream, event(choice))).toBe('')
    expect(stream.committed).toBe(false)
    expect(stream.openingFrames).toBe(1)
  })

  test('log probabilities held before the commit point go out after the role', () => {
    const logprobs = { content: [{ token: '', logprob: -1 }] }
    const stream = started(event({ delta: { content: '' }, logprobs }))
    const deltas = chunksOf(push(stream, TEXT)).map((chunk) => chunk['choices'])
    expect(deltas).toMatchObject([
      [{ delta: { role: 'assistant' } }],
      [{ delta: { content: '' }, logprobs: { content: [{ token: '' }] } }],
      [{ delta: { content: 'a' } }],
    ])
  })

  test('reasoning commits although the client does not want it', () => {
    const stream = createChatStream({ ...OPTIONS, includeReasoning: false })
    const chunks = chunksOf(push(stream, event({ delta: { reasoning: 'hidden' } })))
    expect(stream.committed).toBe(true)
    expect(chunks).toHaveLength(1)
  })
})

describe('the opening limits', () => {
  test('64 frames pass, the 65th fails', () => {
    const stream = started(...Array.from({ length: 64 }, () => ROLE))
    expect(stream.openingFrames).toBe(64)
    const broken = brokenBy(() => stream.push(utf8(ROLE)))
    expect([broken.reason, broken.message]).toEqual(['opening_too_long', 'opening_too_long'])
  })

  test('a real delta may follow 64 frames', () => {
    const stream = started(...Array.from({ length: 64 }, () => ROLE))
    expect(push(stream, TEXT)).not.toBe('')
  })

  test('comments are no frames, but their bytes count', () => {
    const comment = `:${'x'.repeat(1022)}\n`
    const stream = started(...Array.from({ length: MAX_OPENING_BYTES / 1024 }, () => comment))
    expect([stream.openingFrames, stream.openingBytes]).toEqual([0, MAX_OPENING_BYTES])
    expect(brokenBy(() => stream.push(utf8(':\n'))).reason).toBe('opening_too_long')
  })

  test('the first real delta itself may be longer than the limit, in one read or many', () => {
    const long = utf8(event({ delta: { content: 'x'.repeat(2 * MAX_OPENING_BYTES) } }))
    const stream = createChatStream(OPTIONS)
    for (let i = 0; i < long.length; i += 1000) stream.push(long.subarray(i, i + 1000))
    expect(stream.committed).toBe(true)
    expect(push(createChatStream(OPTIONS), fromUtf8(long))).not.toBe('')
  })

  test('too many bytes fail even where a delta follows in the same read', () => {
    const opening = `:${'x'.repeat(MAX_OPENING_BYTES)}\n`
    const broken = brokenBy(() => createChatStream(OPTIONS).push(utf8(opening + TEXT)))
    expect([broken.reason, broken.output.length]).toEqual(['opening_too_long', 0])
  })
})

describe('a fault', () => {
  test('brings along what was sound before it in the same read', () => {
    const broken = brokenBy(() => createChatStream(OPTIONS).push(utf8(`${TEXT}data: {\n\n`)))
    expect(broken.reason).toBe('malformed')
    expect(chunksOf(fromUtf8(broken.output))).toHaveLength(2)
  })

  test('brings nothing along before the commit point', () => {
    const broken = brokenBy(() => createChatStream(OPTIONS).push(utf8(`${ROLE}data: {\n\n`)))
    expect(broken.output).toHaveLength(0)
  })

  test('never carries provider text', () => {
    const text = 'data: {"error":{"message":"SECRET","type":"SECRET","code":"SECRET"}}\n\n'
    const broken = brokenBy(() => createChatStream(OPTIONS).push(utf8(text)))
    expect(`${broken.message}${broken.stack}${JSON.stringify(broken)}`).not.toContain('SECRET')
  })

  test.each([
    ['malformed', 'data: {"SECRET\n\n'],
    ['malformed', 'data: SECRET\n\n'],
    ['malformed', event({ delta: { tool_calls: 'SECRET' } })],
    ['malformed', event({ delta: { content: [{ type: 'image', url: 'SECRET' }] } })],
    ['malformed', event({ delta: 'SECRET' })],
    ['bad_finish', event({ delta: {}, finish_reason: 'error' })],
    ['bad_finish', event({ delta: {}, finish_reason: 'ABORT' })],
    ['bad_finish', event({ delta: {}, finish_reason: 'insufficient_system_resource' })],
    ['bad_finish', event({ delta: {}, finish_reason: { SECRET: 1 } })],
    ['bad_finish', event({ delta: {}, finish_reason: 'SECRET'.repeat(11) })],
  ])('is %s for %j', (reason, text) => {
    const broken = brokenBy(() => createChatStream(OPTIONS).push(utf8(text)))
    expect([broken.reason, broken.message]).toEqual([reason, reason])
  })
})

describe('the end', () => {
  test.each(['eos', 'end_turn', 'stop_sequence', 'max_tokens', 'function_call'])(
    'the finish reason %s, which no client knows, passes as it is',
    (reason) => {
      const stream = started(TEXT, event({ delta: {}, finish_reason: reason }), USAGE)
      const [last] = chunksOf(fromUtf8(stream.close({})))
      expect(last?.['choices']).toEqual([{ index: 0, delta: {}, finish_reason: reason }])
    },
  )

  test('a stream without a finish reason fails at its end', () => {
    expect(brokenBy(() => started(TEXT).end()).reason).toBe('no_finish')
  })

  test('[DONE] without a finish reason fails at once, for the body may stay open', () => {
    expect(brokenBy(() => started(TEXT, DONE)).reason).toBe('no_finish')
  })

  test.each([
    ['usage', [TEXT, FINISH, USAGE]],
    ['[DONE]', [TEXT, FINISH, DONE]],
    [
      'usage on the finish chunk',
      [TEXT, event({ finish_reason: 'stop' }, { usage: { prompt_tokens: 1 } })],
    ],
  ])('nothing more is needed after finish reason and %s', (_, events) => {
    expect(started(...events).done).toBe(true)
  })

  test('nothing more is needed after finish reason and the end of the body', () => {
    const stream = started(TEXT, FINISH)
    expect(stream.done).toBe(false)
    expect(stream.end()).toHaveLength(0)
    expect(stream.done).toBe(true)
  })

  test('an index that is no number is the position, as in a whole answer', () => {
    const text = push(createChatStream(OPTIONS), event({ index: '0', delta: { content: 'a' } }))
    expect(text).toContain('"content":"a"')
  })

  test('usage before the finish reason does not mean that nothing more is needed', () => {
    expect(started(TEXT, USAGE, FINISH).done).toBe(false)
  })

  test('growing usage of other choices does not mean that nothing more is needed', () => {
    const other = event({ index: 1, delta: { content: 'b' } }, { usage: { prompt_tokens: 1 } })
    const stream = started(TEXT, other, FINISH, other)
    expect(stream.done).toBe(false)
    stream.push(utf8(USAGE))
    expect(stream.done).toBe(true)
  })
})

describe('the last chunk', () => {
  test('carries finish reason, usage and service, and the terminator follows', () => {
    const text = fromUtf8(started(TEXT, FINISH, USAGE).close({ receipt_id: 'r' }))
    expect(text.endsWith('\n\ndata: [DONE]\n\n')).toBe(true)
    expect(chunksOf(text)).toEqual([
      {
        id: OPTIONS.id,
        object: 'chat.completion.chunk',
        created: OPTIONS.created,
        model: OPTIONS.model,
        choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
        service: { receipt_id: 'r' },
      },
    ])
  })

  test('shows an estimate where the provider gave no usage', () => {
    const estimate = { promptTokens: 7, completionTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 }
    const [last] = chunksOf(fromUtf8(started(TEXT, FINISH).close({}, estimate)))
    expect(last?.['usage']).toEqual({ prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 })
  })

  test('shows what is billed where that is not what the provider claims', () => {
    const billed = { promptTokens: 3, completionTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 }
    const claim = { prompt_tokens: 3, completion_tokens: 900, reasoning_tokens: 800 }
    const usage = `data: ${JSON.stringify({ choices: [], usage: claim })}\n\n`
    const [last] = chunksOf(fromUtf8(started(TEXT, FINISH, usage).close({}, billed)))
    expect(last?.['usage']).toEqual({
      prompt_tokens: 3,
      completion_tokens: 1,
      total_tokens: 4,
      completion_tokens_details: { reasoning_tokens: 1 },
    })
  })

  test('cannot be made without a finish reason', () => {
    expect(() => started(TEXT).close({})).toThrow('internal error: no finish reason')
  })
})

describe('text that no usage covers', () => {
  const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{"a":"é"}' } }

  test('is counted in UTF-8 bytes, of every kind of text', () => {
    const delta = { content: '🦊€', reasoning: 'é', refusal: 'n', tool_calls: [call] }
    expect(started(event({ delta })).uncountedTextBytes).toBe(7 + 2 + 1 + 10)
  })

  test.each([
    ['reasoning that the client does not want', { index: 0, delta: { reasoning: 'hidden' } }, 6],
    [
      'the same reasoning under both names once',
      { delta: { reasoning: 'same', reasoning_content: 'same' } },
      4,
    ],
    ['a further choice', { index: 1, delta: { content: 'other', tool_calls: [call] } }, 5 + 10],
    [
      'parts with thinking in them',
      {
        delta: {
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'ab' }] },
            { type: 'text', text: 'c' },
          ],
        },
      },
      3,
    ],
    [
      'a further choice in no known form',
      { index: 1, delta: { content: [1], tool_calls: 'x' } },
      0,
    ],
    ['a call in the older form', { index: 1, delta: { function_call: { arguments: '{ }' } } }, 3],
  ])('counts %s', (_, choice, bytes) => {
    const stream = createChatStream({ ...OPTIONS, includeReasoning: false })
    stream.push(utf8(event(choice)))
    expect(stream.uncountedTextBytes).toBe(bytes)
  })

  test.each([
    ['before it', ['tool_calls', 'function_call']],
    ['after it', ['function_call', 'tool_calls']],
  ])('counts a call once where a copy of it comes %s in a delta of its own', (_, forms) => {
    const called = { name: 'f', arguments: '{"a":1}' }
    const copies = { tool_calls: [{ index: 0, id: 'c', function: called }], function_call: called }
    const deltas = forms.map((form) => Object.entries(copies).filter(([name]) => name === form))
    const events = deltas.map((members) => event({ delta: Object.fromEntries(members) }))
    expect(started(...events).uncountedTextBytes).toBe(called.arguments.length)
  })

  test('is none where each of its frames repeats the same usage', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 9 }
    const texts = ['ab', 'cd', 'ef'].map((content) => event({ delta: { content } }, { usage }))
    const stream = started(...texts)
    expect([stream.uncountedTextBytes, stream.usage?.completionTokens]).toEqual([0, 9])
  })

  test('counts text that repeats the frame of an earlier one', () => {
    const stream = started(...['abc', 'def', 'éé'].map((content) => event({ delta: { content } })))
    expect(stream.uncountedTextBytes).toBe(10)
  })

  test('is none once completion tokens were counted, and starts over after that', () => {
    const stream = started(TEXT, USAGE)
    expect(stream.uncountedTextBytes).toBe(0)
    stream.push(utf8(event({ delta: { content: 'more' } })))
    expect(stream.uncountedTextBytes).toBe(4)
  })

  test('is not covered by a usage that counts the prompt alone', () => {
    const stream = started(TEXT)
    stream.push(utf8('data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}\n\n'))
    expect(stream.uncountedTextBytes).toBe(3)
  })
})

test('model, id, created and fingerprints of the provider never leak', () => {
  const hidden = { model: 'SECRET', system_fingerprint: 'SECRET', provider: 'SECRET', created: 9 }
  const stream = createChatStream(OPTIONS)
  const text =
    push(stream, event({ delta: { content: 'a', SECRET: 1 }, SECRET: 1 }, hidden)) +
    push(stream, FINISH) +
    fromUtf8(stream.close({}))
  expect(text).not.toContain('SECRET')
  expect(text).not.toContain('"p"')
  expect(stream.providerResponseId).toBe('p')
})

describe('the values of one event', () => {
  test('are bounded: a million empty objects end the stream before they are parsed', () => {
    const stream = started(TEXT)
    const more = { ignored: Array.from({ length: 1_000_000 }, () => ({})) }
    expect(brokenBy(() => push(stream, event({ delta: {} }, more))).reason).toBe('malformed')
  })

  test('may be 4,000 tokens with 20 alternatives each', () => {
    const alternative = { token: 'a', logprob: -1, bytes: [97] }
    const token = { ...alternative, top_logprobs: Array.from({ length: 20 }, () => alternative) }
    const logprobs = { content: Array.from({ length: 4_000 }, () => token), refusal: null }
    const text = push(started(), event({ delta: { content: 'a' }, logprobs }))
    expect(text.length).toBeGreaterThan(4_000 * 20 * 30)
  })
})
