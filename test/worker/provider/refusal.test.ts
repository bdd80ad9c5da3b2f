import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { invalidField, refusalKind } from '../../../src/worker/provider/refusal.ts'

const bytesOf = (body: string | object) =>
  utf8(typeof body === 'string' ? body : JSON.stringify(body))

/** Refusals for an over-long prompt as public servers word them. */
const TOO_LONG: readonly (readonly [string, string | object])[] = [
  [
    'OpenAI',
    {
      error: {
        message: 'Too long.',
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'OpenAI, window',
    { error: { message: 'Your input exceeds the context window of this model.', code: null } },
  ],
  [
    'vLLM',
    {
      error: {
        message:
          "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    },
  ],
  [
    'vLLM, flat',
    {
      object: 'error',
      message: "This model's maximum context length is 8192 tokens.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  ],
  [
    'vLLM, decoder prompt',
    {
      error: {
        message:
          'The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
      },
    },
  ],
  [
    'vLLM behind a proxy',
    {
      detail: JSON.stringify({
        error: { message: "This model's maximum context length is 8192 tokens." },
      }),
    },
  ],
  [
    'SGLang',
    {
      object: 'error',
      message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      type: 'BadRequestError',
      code: 400,
    },
  ],
  [
    'SGLang, requested',
    { message: "Requested token count exceeds the model's maximum context length of 8192 tokens." },
  ],
  [
    'llama.cpp',
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_ctx: 4096,
      },
    },
  ],
  [
    'Ollama',
    {
      error: {
        message: 'the input length exceeds the context length',
        type: 'invalid_request_error',
      },
    },
  ],
  [
    'TGI',
    {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000',
      error_type: 'validation',
    },
  ],
  [
    'TGI, inputs',
    {
      error: 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000',
      error_type: 'validation',
    },
  ],
  [
    'DeepSeek',
    {
      error: {
        message:
          "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.",
        type: 'invalid_request_error',
      },
    },
  ],
  [
    'OpenRouter',
    { error: { code: 400, message: "This endpoint's maximum context length is 32768 tokens." } },
  ],
  [
    'OpenRouter, raw',
    {
      error: {
        code: 400,
        message: 'Provider returned error',
        metadata: { raw: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}' },
      },
    },
  ],
  [
    'Groq',
    {
      error: {
        message: 'Please reduce the length of the messages or completion.',
        type: 'invalid_request_error',
      },
    },
  ],
  ['Groq, size', { error: { message: 'Request too large', code: 'context_length_exceeded' } }],
  [
    'Gemini',
    [
      {
        error: {
          code: 400,
          message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
  ],
  [
    'xAI',
    {
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 8 but the request contains 9 tokens.",
    },
  ],
  [
    'Cohere',
    { message: 'too many tokens: total number of tokens in the prompt cannot exceed 4081' },
  ],
  [
    'Kimi',
    {
      error: {
        message: 'Invalid request: Your request exceeded model token limit: 8192',
        type: 'invalid_request_error',
      },
    },
  ],
  ['GLM', { error: { code: '1261', message: 'Prompt exceeds max length' } }],
  ['Qwen', { code: 'InvalidParameter', message: 'Range of input length should be [1, 30720]' }],
  ['MiniMax', { error: { message: 'context window exceeds limit (2013)' } }],
  ['plain text', 'prompt is too long'],
]

const UNWANTED: readonly (readonly [string, string | object])[] = [
  [
    'OpenAI',
    {
      error: {
        message: 'Blocked.',
        code: 'content_policy_violation',
        type: 'image_generation_user_error',
      },
    },
  ],
  [
    'OpenAI, prompt',
    {
      error: {
        message:
          'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
        code: 'invalid_prompt',
      },
    },
  ],
  [
    'Azure',
    {
      error: {
        message: 'Filtered.',
        code: 'content_filter',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
  ],
  [
    'Azure, inner',
    {
      error: {
        message: 'Filtered.',
        code: '400',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
  ],
  [
    'Azure, words',
    {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      },
    },
  ],
  [
    'DeepSeek',
    {
      error: {
        message: 'Content Exists Risk',
        type: 'invalid_request_error',
        code: 'invalid_request_error',
      },
    },
  ],
  [
    'Qwen',
    {
      error: {
        code: 'data_inspection_failed',
        message: 'Input data may contain inappropriate content.',
      },
    },
  ],
  [
    'GLM',
    {
      error: {
        code: '1301',
        message: 'The system detected potentially unsafe or sensitive content in the input.',
      },
    },
  ],
  ['MiniMax', { error: { message: 'input new_sensitive (1026)' } }],
]

const OTHERWISE_REFUSED: readonly (readonly [string, string | object])[] = [
  ['an empty body', ''],
  ['HTML', '<html><head><title>400 Bad Request</title></head></html>'],
  [
    'an unknown parameter',
    { error: { message: "Unrecognized request argument: 'foo'", code: null } },
  ],
  [
    'a cap too large',
    {
      error: {
        message:
          'max_tokens is too large: 99999. This model supports at most 16384 completion tokens.',
      },
    },
  ],
  [
    'a list of faults',
    { detail: [{ type: 'missing', loc: ['body', 'messages'], msg: 'Field required' }] },
  ],
  [
    'a fault that quotes the caller',
    {
      detail: [
        { type: 'x', msg: 'Wrong.', input: { content: 'maximum context length, content_filter' } },
      ],
    },
  ],
  [
    'a quoted body cut off',
    `{"error":{"message":"Wrong.","input":"${'x'.repeat(1000)} context_length_exceeded`,
  ],
  ['no object', 'null'],
  ['a number', '42'],
  ['an unlikely depth', '['.repeat(30_000)],
  ['nested far', `${'{"error":'.repeat(60)}"context_length_exceeded"${'}'.repeat(60)}`],
  ['bytes that are no text', '\u0000\ufffd'],
]

describe('refusalKind', () => {
  it.each(TOO_LONG)('knows an over-long prompt in the words of %s', (_, body) => {
    expect(refusalKind(bytesOf(body))).toBe('context_length')
  })

  it.each(UNWANTED)('knows a content policy in the words of %s', (_, body) => {
    expect(refusalKind(bytesOf(body))).toBe('content_policy')
  })

  it.each(OTHERWISE_REFUSED)('takes %s for a plain refusal', (_, body) => {
    expect(refusalKind(bytesOf(body))).toBe('rejected')
  })
})

describe('invalidField', () => {
  it.each([
    ['param', { error: { message: 'Bad.', param: 'language' } }, 'language'],
    [
      'the end of a path',
      { detail: [{ loc: ['body', 'temperature'], msg: 'Bad.' }] },
      'temperature',
    ],
    ['nothing', { error: { message: 'Bad.', param: null } }, undefined],
    ['nothing in HTML', '<html>', undefined],
    ['nothing in no body', '', undefined],
  ])('finds %s', (_, body, field) => {
    expect(invalidField(bytesOf(body))).toBe(field)
  })
})
