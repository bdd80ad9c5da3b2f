import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import {
  OPTIONS,
  SERVICE,
  chunksOf,
  goldenStreams,
  providerBytes,
  rebuildCompletion,
  replay,
} from '../../support/golden-streams.ts'
import { OPENAPI_SCHEMAS } from '../../support/openapi.ts'

describe('the published schema of the format', () => {
  let validateChunk: ValidateFunction
  let validateAnswer: ValidateFunction

  beforeAll(() => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema(repaired(JSON.parse(readFileSync(OPENAPI_SCHEMAS, 'utf8'))), 'openapi')
    const schema = (name: string) => ajv.compile({ $ref: `openapi#/components/schemas/${name}` })
    validateChunk = schema('CreateChatCompletionStreamResponse')
    validateAnswer = schema('CreateChatCompletionResponse')
  }, 30_000)

  // The interface passes a finish reason on as the provider gave it; the published schema lists a few.
  const listed = goldenStreams().filter(({ file }) => file !== 'finish-reason-unknown.json')

  test.each(listed)('$provider: every chunk holds: $name ($file)', (golden) => {
    const { text } = replay([providerBytes(golden)], { ...OPTIONS, ...golden.options })
    for (const chunk of chunksOf(text)) expect(faults(validateChunk, chunk)).toEqual([])
  })

  test('a chunk with a null id in a tool fragment would not hold', () => {
    const delta = { tool_calls: [{ index: 0, id: null }] }
    const chunk = { id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const choices = [{ index: 0, delta, finish_reason: null }]
    expect(faults(validateChunk, { ...chunk, choices })).not.toEqual([])
  })

  const call = { type: 'function', function: { name: 'f', arguments: {} } }
  const token = { token: 'a', logprob: -1, rank: 1, top_logprobs: [{ token: 'b', logprob: -2 }] }

  test.each([
    ['the least a server sends', { message: { content: 'a' } }],
    ['no content', { message: { content: null, reasoning: 'a' } }],
    ['a refusal', { message: { refusal: 'a' } }],
    ['tool calls', { message: { tool_calls: [call, { ...call, id: 'x' }] } }],
    ['log probabilities', { message: { content: 'a' }, logprobs: { content: [token] } }],
    ['log probabilities of another form', { message: { content: 'a' }, logprobs: { tokens: [] } }],
    ['nulls', { message: { content: 'a', refusal: null, tool_calls: null, audio: null } }],
  ])('a whole answer holds: %s', (_, choice) => {
    const usage = { prompt_tokens: 1, completion_tokens: 1, prompt_cache_hit_tokens: 1 }
    const body = { choices: [{ ...choice, finish_reason: 'stop' }], usage }
    const { json } = rebuildCompletion(utf8(JSON.stringify(body)), OPTIONS)
    expect(faults(validateAnswer, JSON.parse(json(SERVICE)))).toEqual([])
  })

  test('whole answers made of every golden delta hold', () => {
    const deltas = goldenStreams().flatMap((golden) => golden.chunks)
    const answers = deltas.flatMap(({ delta, logprobs }) => {
      const choice = { message: delta, logprobs, finish_reason: 'stop' }
      return rebuiltOrNone(JSON.stringify({ choices: [choice] })) ?? []
    })
    expect(answers.length).toBeGreaterThan(deltas.length / 2)
    expect(answers.flatMap((answer) => faults(validateAnswer, answer))).toEqual([])
  })
})

/** Fragments of tool calls without a name make no whole answer. */
function rebuiltOrNone(body: string): object | undefined {
  try {
    return JSON.parse(rebuildCompletion(utf8(body), OPTIONS).json(SERVICE))
  } catch (error) {
    if (error instanceof BrokenStream && error.reason === 'malformed') return undefined
    throw error
  }
}

function faults(validate: ValidateFunction, value: unknown): unknown[] {
  return validate(value) ? [] : [...(validate.errors ?? [])]
}

/** The document is OpenAPI 3.1 with `nullable` left over from 3.0, which JSON Schema does not know. */
function repaired(node: unknown): Record<string, unknown> {
  const text = JSON.stringify(node, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('nullable' in value)) return value
    const { nullable, ...schema } = value
    return nullable === true ? { anyOf: [schema, { type: 'null' }] } : schema
  })
  return JSON.parse(text)
}
