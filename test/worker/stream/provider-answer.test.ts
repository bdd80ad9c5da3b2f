import { describe, expect, test } from 'vitest'
import { concatBytes, utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { parseJsonObject } from '../../../src/worker/stream/json-object.ts'
import { readProviderAnswer } from '../../../src/worker/stream/provider-answer.ts'
import { API_FORMATS } from '../../support/api-formats.ts'
import { OPTIONS, SERVICE, rebuildCompletion } from '../../support/golden-streams.ts'

const FIXED = {
  id: OPTIONS.id,
  object: 'chat.completion',
  created: OPTIONS.created,
  model: OPTIONS.model,
}

function answer(message: unknown, choice: object = {}, more: object = {}): string {
  const full = { index: 0, message, finish_reason: 'stop', ...choice }
  return JSON.stringify({ id: 'p', object: 'chat.completion', choices: [full], ...more })
}

function rebuild(text: string, options: Partial<typeof OPTIONS> = {}) {
  return rebuildCompletion(utf8(text), { ...OPTIONS, ...options })
}

function messageOf(text: string): unknown {
  return JSON.parse(rebuild(text).json({})).choices[0].message
}

function reasonOf(body: string | Uint8Array): string[] {
  try {
    rebuildCompletion(typeof body === 'string' ? utf8(body) : body, OPTIONS)
  } catch (error) {
    if (error instanceof BrokenStream) return [error.reason, error.message]
    throw error
  }
  return expect.unreachable()
}

describe('whole answers of the known servers', () => {
  test('vLLM: nulls, token ids and fingerprints go, the schema holds', () => {
    const message = {
      role: 'assistant',
      content: 'Hello',
      refusal: null,
      annotations: null,
      audio: null,
      function_call: null,
      tool_calls: [],
      reasoning: null,
    }
    const usage = {
      prompt_tokens: 5,
      total_tokens: 8,
      completion_tokens: 3,
      prompt_tokens_details: null,
    }
    const more = { model: 'zai-org/GLM-5', system_fingerprint: 'x', usage, prompt_logprobs: null }
    const text = answer(message, { logprobs: null, stop_reason: null, token_ids: null }, more)
    const completion = rebuild(text)
    expect(JSON.parse(completion.json(SERVICE))).toEqual({
      ...FIXED,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
      service: SERVICE,
    })
    expect(completion).toMatchObject({
      usage: { promptTokens: 5, completionTokens: 3, cachedTokens: 0, cacheWriteTokens: 0 },
      providerResponseId: 'p',
      finishReasons: ['stop'],
      uncountedTextBytes: 0,
    })
  })

  test('DeepSeek: blank lines ahead of the body, cache hits under their own name', () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 3,
      prompt_cache_hit_tokens: 8,
      total_tokens: 12,
    }
    const text = answer({ role: 'assistant', content: 'a', reasoning_content: 'b' }, {}, { usage })
    const shown = JSON.parse(rebuild(`\n\n\r\n \n${text}\n`).json({}))
    expect(shown.choices[0].message).toMatchObject({ content: 'a', reasoning: 'b' })
    expect(shown.usage.prompt_tokens_details).toEqual({ cached_tokens: 8 })
  })

  test('Ollama: arguments that are an object become JSON text', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: { a: ['é', 1] } } }
    const text = answer({ role: 'assistant', content: '', tool_calls: [call] })
    expect(messageOf(text)).toEqual({
      role: 'assistant',
      content: '',
      refusal: null,
      tool_calls: [
        { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":["é",1]}' } },
      ],
    })
  })

  test('TGI: an empty id is none, a call without id gets one', () => {
    const call = { id: '', type: 'function', function: { name: 'f', arguments: '{}' } }
    const text = answer(
      { role: 'assistant', content: null, tool_calls: [call, call] },
      {},
      { id: '' },
    )
    expect(rebuild(text).providerResponseId).toBeUndefined()
    expect(messageOf(text)).toMatchObject({
      content: null,
      tool_calls: [{ id: 'call_chatcmpl-golden_0' }, { id: 'call_chatcmpl-golden_1' }],
    })
  })

  test('SGLang: reasoning tokens at top level of usage are shown and not billed', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 7, total_tokens: 9, reasoning_tokens: 5 }
    const completion = rebuild(answer({ content: 'a' }, {}, { usage }))
    expect(completion.usage).toMatchObject({ completionTokens: 7 })
    expect(JSON.parse(completion.json({})).usage.completion_tokens_details).toEqual({
      reasoning_tokens: 5,
    })
  })

  test('Mistral: list-form content becomes text and reasoning', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Mm' }] },
      { type: 'text', text: 'Oui' },
      { type: 'text', text: '!' },
    ]
    expect(messageOf(answer({ content }))).toMatchObject({ content: 'Oui!', reasoning: 'Mm' })
  })
})

describe('members of an answer', () => {
  test('all choices are kept, each with its index, in the order of the indexes', () => {
    const choices = [
      { index: 1, message: { content: 'b' }, finish_reason: 'length' },
      { index: 0, message: { content: 'a' }, finish_reason: 'stop' },
      { message: { content: 'c' }, finish_reason: 'stop' },
    ]
    const completion = rebuild(JSON.stringify({ choices }))
    expect(JSON.parse(completion.json({})).choices).toMatchObject([
      { index: 0, message: { content: 'a' } },
      { index: 1, message: { content: 'b' } },
      { index: 2, message: { content: 'c' } },
    ])
    expect(completion.finishReasons).toEqual(['stop', 'length', 'stop'])
  })

  test.each(['eos', 'end_turn', 'stop_sequence', 'max_tokens', 'function_call'])(
    'the finish reason %s, which no client knows, passes as it is',
    (reason) => {
      const completion = rebuild(answer({ content: 'a' }, { finish_reason: reason }))
      expect(JSON.parse(completion.json({})).choices[0].finish_reason).toBe(reason)
    },
  )

  test('text of all choices counts as produced where the provider counted nothing', () => {
    const choices = ['abc', 'abcd'].map((content) => ({
      message: { content },
      finish_reason: 'stop',
    }))
    expect(rebuild(JSON.stringify({ choices })).uncountedTextBytes).toBe(7)
  })

  test('numbers inside tool arguments stay as they are', () => {
    const text = '{"a":12345678901234567890,"b":0.50,"c":1e2}'
    const call = { id: 'c', function: { name: 'f', arguments: text } }
    expect(messageOf(answer({ tool_calls: [call] }))).toMatchObject({
      tool_calls: [{ function: { arguments: text } }],
    })
  })

  test.each([null, '', undefined])(
    'a call without arguments has an empty object of them: %j',
    (args) => {
      const call = { id: 'c', function: { name: 'f', arguments: args } }
      expect(messageOf(answer({ tool_calls: [call] }))).toMatchObject({
        tool_calls: [{ function: { arguments: '{}' } }],
      })
      const cutOff = answer({ tool_calls: [call] }, { finish_reason: 'length' })
      expect(messageOf(cutOff)).toMatchObject({ tool_calls: [{ function: { arguments: '' } }] })
    },
  )

  describe('a call in the form that preceded tool calls', () => {
    const called = { name: 'f', arguments: '{"a":1}' }

    test('is a tool call, and the finish reason says so', () => {
      const older = answer({ function_call: called }, { finish_reason: 'function_call' })
      const [choice] = JSON.parse(rebuild(older).json({})).choices
      expect(choice.finish_reason).toBe('tool_calls')
      expect(choice.message).toEqual({
        role: 'assistant',
        content: null,
        refusal: null,
        tool_calls: [{ id: `call_${OPTIONS.id}_0`, type: 'function', function: called }],
      })
    })

    test('counts once where it stands beside its copy among the tool calls', () => {
      const tool_calls = [{ id: 'c', function: called }]
      const completion = rebuild(answer({ tool_calls, function_call: called }))
      expect(JSON.parse(completion.json({})).choices[0].message.tool_calls).toHaveLength(1)
      expect(completion.uncountedTextBytes).toBe(called.arguments.length)
    })

    test.each([
      {},
      { name: '', arguments: '' },
      { name: null, arguments: null },
      { name: '', arguments: '{}' },
      'auto',
      [],
    ])('that calls nothing is none: %j', (nothing) => {
      expect(messageOf(answer({ content: 'a', function_call: nothing }))).toEqual({
        role: 'assistant',
        content: 'a',
        refusal: null,
      })
    })

    test('without a name is malformed', () => {
      const nameless = answer({ function_call: { arguments: '{"a":1}' } })
      expect(() => rebuild(nameless)).toThrow('malformed')
    })
  })

  test('a refusal passes', () => {
    expect(messageOf(answer({ content: null, refusal: 'No.' }))).toMatchObject({ refusal: 'No.' })
  })

  test('an empty refusal, which some servers fill in, is none in every format', () => {
    const filled = parseJsonObject(answer({ content: 'a', refusal: '' }))
    const bodies = Object.values(API_FORMATS).map(({ format }) => {
      const read = runAtOnce(readProviderAnswer(filled, OPTIONS))
      return format.wholeBody(read, OPTIONS, undefined, SERVICE)
    })
    const text = { type: 'output_text', text: 'a', annotations: [], logprobs: [] }
    expect(bodies).toMatchObject([
      { choices: [{ message: { content: 'a', refusal: null } }] },
      { output: [{ type: 'message', content: [text] }] },
      { content: [{ type: 'text', text: 'a' }], stop_reason: 'end_turn' },
    ])
  })

  test('include_reasoning false drops reasoning and the log probabilities that spell it', () => {
    const logprobs = { content: [{ token: 'SECRET', logprob: 0 }] }
    const text = answer(
      { content: 'a', reasoning: 'SECRET', reasoning_content: 'SECRET' },
      { logprobs },
    )
    const completion = rebuild(text, { includeReasoning: false })
    expect(completion.json({})).not.toContain('SECRET')
    expect(completion.uncountedTextBytes).toBe(1 + 6)
  })

  test('reasoning goes out under its one name', () => {
    const text = answer({ content: 'a', reasoning_content: 'b' })
    expect(messageOf(text)).not.toHaveProperty('reasoning_content')
    expect(messageOf(text)).toMatchObject({ reasoning: 'b' })
  })

  test('an answer without usage shows an estimate, or none', () => {
    const completion = rebuild(answer({ content: 'a' }))
    const estimate = { promptTokens: 3, completionTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 }
    expect(completion.usage).toBeUndefined()
    expect(JSON.parse(completion.json({}))).not.toHaveProperty('usage')
    expect(JSON.parse(completion.json({}, estimate)).usage).toMatchObject({ total_tokens: 4 })
  })

  test('nothing else of the provider passes', () => {
    const hidden = { SECRET: 1, annotations: ['SECRET'], audio: { data: 'SECRET' } }
    const more = {
      model: 'SECRET',
      system_fingerprint: 'SECRET',
      provider: 'SECRET',
      usage: { SECRET: 1 },
    }
    const text = answer({ role: 'SECRET', content: 'a', ...hidden }, { ...hidden }, more)
    expect(rebuild(text).json({})).not.toContain('SECRET')
  })
})

describe('answers that are none', () => {
  test.each([
    ['error_event', '{"error":{"message":"x","code":500}}'],
    ['error_event', '{"error":"overloaded"}'],
    ['error_event', '{"object":"error","message":"x"}'],
    ['error_event', answer({ content: 'a' }, {}, { error: { code: 502 } })],
    ['rate_limited', '{"error":{"message":"x","code":429}}'],
    ['rate_limited', '{"error":{"type":"RateLimitError"}}'],
    ['malformed', '{"detail":"x"}'],
    ['malformed', '{"choices":[]}'],
    ['malformed', '{"choices":[null]}'],
    ['malformed', '{"choices":{}}'],
    ['malformed', '[]'],
    ['malformed', 'null'],
    ['malformed', ''],
    ['malformed', '<html></html>'],
    ['malformed', `${answer({ content: 'a' })}x`],
    ['malformed', answer(null)],
    ['malformed', answer({ content: 1 })],
    ['malformed', answer({ content: 'a', tool_calls: [{ function: {} }] })],
    [
      'malformed',
      answer({ content: 'a', tool_calls: [{ function: { name: 'f', arguments: 1 } }] }),
    ],
    ['no_finish', answer({ content: 'a' }, { finish_reason: null })],
    ['bad_finish', answer({ content: 'a' }, { finish_reason: 'error' })],
    ['bad_finish', answer({ content: 'a' }, { finish_reason: 'abort' })],
    ['bad_finish', answer({ content: 'a' }, { finish_reason: 'insufficient_system_resource' })],
    ['bad_finish', answer({ content: 'a' }, { finish_reason: 7 })],
  ])('%s: %s', (reason, body) => {
    expect(reasonOf(body)).toEqual([reason, reason])
  })

  test('invalid UTF-8 is malformed', () => {
    const body = concatBytes(utf8('{"choices":"'), Uint8Array.of(0xff), utf8('"}'))
    expect(reasonOf(body)).toEqual(['malformed', 'malformed'])
  })

  test('nesting too deep to print is malformed', () => {
    const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
    const call = `{"function":{"name":"f","arguments":${deep}}}`
    const body = `{"choices":[{"finish_reason":"stop","message":{"tool_calls":[${call}]}}]}`
    expect(reasonOf(body)).toEqual(['malformed', 'malformed'])
  })

  test('a byte order mark harms nothing', () => {
    expect(rebuild(`\uFEFF${answer({ content: 'a' })}`).finishReasons).toEqual(['stop'])
  })
})

test('an answer with 200,000 tokens of log probabilities is written in every format', () => {
  const token = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }
  const content = Array.from({ length: 200_000 }, () => token)
  const text = answer({ content: 'a' }, { logprobs: { content, refusal: null } })
  for (const { format } of Object.values(API_FORMATS)) {
    const read = runAtOnce(readProviderAnswer(parseJsonObject(text), OPTIONS))
    const body = JSON.stringify(format.wholeBody(read, OPTIONS, undefined, SERVICE))
    expect(body).toContain('"service":')
  }
})
