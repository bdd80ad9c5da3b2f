import { describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { SMALL_BODY_BYTES } from '../../../src/protocol/link-messages.ts'
import type { WholeAnswerSpec } from '../../../src/protocol/whole-answer.ts'
import { writeWholeAnswer } from '../../../src/enclave/whole-answers/write-whole-answer.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { messagesFormat } from '../../../src/worker/messages/encoder.ts'
import { billedUsage } from '../../../src/worker/stream/billed-usage.ts'
import { readSmallAnswer } from '../../../src/worker/stream/read-small-answer.ts'
import { wholeAnswerSpec } from '../../support/whole-answer-spec.ts'

/** The daemon's answers are those that the worker writes of the same bytes. */

const AT = 1_790_000_000_999
const ID = 'chatcmpl-0c1f6a3e'
const RECEIPT_ID = '2f1c6a3e-8f5b-4c1e-9c55-0d9f1b2a3c4d'
const BILLING = { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 100 }
const BOUND = { promptEstimate: 7, promptTokens: 1_000, completionTokens: 100 }
const REQUEST = Buffer.from('{"model":"glm"}')

function spec(change: Partial<Record<keyof WholeAnswerSpec, unknown>> = {}): WholeAnswerSpec {
  return wholeAnswerSpec({
    id: ID,
    requested_route: 'glm-5',
    routed_model: 'nova/glm-5',
    failover: true,
    billing: BILLING,
    receipt: {
      jti: RECEIPT_ID,
      endpoint: '/v1/chat/completions',
      client_request_digest: 'a3'.repeat(32),
      bills_tokens: true,
      configuration_sha256: 'cf'.repeat(32),
    },
    ...change,
  })
}

const write = (given: WholeAnswerSpec, answer: string) =>
  writeWholeAnswer(
    { spec: given, provider: 'nova', evidenceSha256: null, request: REQUEST },
    Buffer.from(answer),
    AT,
  )

const choice = (message: object, more: object = {}) => ({
  index: 0,
  message: { role: 'assistant', ...message },
  finish_reason: 'stop',
  ...more,
})
const USAGE = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 }
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

const ANSWERS = {
  'a text': { choices: [choice({ content: 'Grüße, 🙂 "Welt"' })], usage: USAGE },
  reasoning: { choices: [choice({ content: 'yes', reasoning: 'Let me see.' })], usage: USAGE },
  'a call of a tool': {
    choices: [choice({ content: null, tool_calls: [call] }, { finish_reason: 'tool_calls' })],
    usage: USAGE,
  },
  'a refusal': { choices: [choice({ refusal: 'I must not.' })], usage: USAGE },
  'several choices': {
    choices: [choice({ content: 'two' }, { index: 1 }), choice({ content: 'one' })],
    usage: USAGE,
  },
  'log probabilities': {
    choices: [
      choice(
        { content: 'a' },
        { logprobs: { content: [{ token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [] }] } },
      ),
    ],
    usage: USAGE,
  },
  'counts of the cache and of reasoning': {
    choices: [choice({ content: 'x' })],
    usage: {
      ...USAGE,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 9 },
    },
  },
  'no counts': { choices: [choice({ content: 'A text without a count of its tokens.' })] },
  'a total alone': {
    choices: [choice({ content: 'A text without a count of its tokens.' })],
    usage: { total_tokens: 9 },
  },
  'more tokens than there can be': {
    choices: [choice({ content: 'x' })],
    usage: { prompt_tokens: 9_999, completion_tokens: 9_999 },
  },
  'a stop sequence': {
    choices: [choice({ content: 'x' }, { stop_reason: 'END' })],
    usage: USAGE,
  },
}

const API_FORMATS = {
  chat: { format: chatFormat(false), described: { door: 'chat' } },
  messages: {
    format: messagesFormat({ promptEstimate: 7, stopSequences: ['END'] }),
    described: { door: 'messages', prompt_estimate: 7, stop_sequences: ['END'] },
  },
} as const

describe.each(Object.entries(API_FORMATS))('in the format %s', (_format, { format, described }) => {
  it('is what the format tells the daemon', () => {
    expect(format.wholeFormat()).toEqual(described)
  })

  it.each(Object.entries(ANSWERS))(
    '%s is written as the worker writes it',
    async (_name, given) => {
      const text = JSON.stringify({ id: 'cmpl-7', ...given })
      for (const includeReasoning of [true, false]) {
        const asked = spec({ format: described, include_reasoning: includeReasoning })
        const written = write(asked, text)
        const read = readSmallAnswer(Buffer.from(text), { id: ID, includeReasoning })
        const { produced, counts } = read.tally
        const { usage } = billedUsage(produced, BOUND)
        const head = { id: ID, created: 1_790_000_000, model: 'nova/glm-5' }
        const service = {
          receipt_id: RECEIPT_ID,
          requested_route: 'glm-5',
          routed_model: 'nova/glm-5',
          failover: true,
        }
        const body = format.wholeBody(read, head, read.tally.report(usage), service)
        expect(written?.body.toString()).toBe(JSON.stringify(body))
        expect(written?.record).toEqual({
          counts,
          provider_response_id: 'cmpl-7',
          request_sha256: await sha256Hex(new Uint8Array(REQUEST)),
          response_sha256: await sha256Hex(new Uint8Array(Buffer.from(text))),
        })
        expect(written?.claims).toEqual({
          jti: RECEIPT_ID,
          iat: 1_790_000_000,
          endpoint: '/v1/chat/completions',
          requested_route: 'glm-5',
          routed_model: 'nova/glm-5',
          prompt_tokens: usage.promptTokens,
          completion_tokens: usage.completionTokens,
          request_digest: await sha256Hex(new Uint8Array(REQUEST)),
          response_digest: await sha256Hex(new Uint8Array(Buffer.from(text))),
          digest_version: 1,
          failover: true,
          client_request_digest: 'a3'.repeat(32),
          client_response_digest: await sha256Hex(new Uint8Array(written?.body ?? [])),
        })
      }
    },
  )
})

const TEXT = JSON.stringify(ANSWERS['a text'])

describe('a receipt', () => {
  it('is not claimed where none is wanted, and the answer names none', () => {
    const written = write(spec({ receipt: null }), TEXT)
    expect(written?.claims).toBeUndefined()
    expect(JSON.parse(written?.body.toString() ?? '')).toMatchObject({
      service: { requested_route: 'glm-5', routed_model: 'nova/glm-5', failover: true },
    })
    expect(written?.body.toString()).not.toContain('receipt_id')
  })

  it('has no tokens where none are billed, and repeats the constraints', () => {
    const { receipt } = spec()
    if (receipt === null) throw new Error('a receipt was requested')
    const constraints = { min: 'hardware' } as const
    const asked = spec({
      receipt: { ...receipt, bills_tokens: false, constraints },
    })
    expect(write(asked, TEXT)?.claims).toMatchObject({
      prompt_tokens: 0,
      completion_tokens: 0,
      constraints,
    })
  })
})

describe('left to the worker, which says what is wrong with it, is', () => {
  it.each([
    ['what is no JSON', 'oops'],
    ['what is not UTF-8', '\u0000\uD800'],
    ['an error', '{"error":{"message":"no"}}'],
    ['an answer without choices', '{"choices":[]}'],
    ['a choice that did not finish', '{"choices":[{"message":{"content":"a"}}]}'],
    ['a failed choice', '{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}'],
  ])('%s', (_name, answer) => {
    expect(write(spec(), answer)).toBeUndefined()
  })

  it('an answer that is no small one any more', () => {
    // Numbers are written out: each takes five bytes here, and over twenty in the answer.
    const numbers = Array.from({ length: 4_000 }, () => '1e20').join(',')
    const content = `{"token":"a","logprob":-1,"bytes":[${numbers}]}`
    const answer = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop","logprobs":{"content":[${content}]}}]}`
    expect(answer.length).toBeLessThan(SMALL_BODY_BYTES)
    expect(write(spec(), answer)).toBeUndefined()
  })
})
