import { describe, expect, test } from 'vitest'
import { errorFormatAt } from '../../../src/worker/http/error-format.ts'
import { ApiError, ERROR_STATUS, type ErrorCode } from '../../../src/worker/http/errors.ts'
import { failureCode } from '../../../src/worker/http/responses-errors.ts'
import { errorReply } from '../../../src/worker/http/reply.ts'

/** Errors in the form of the Messages format, for every code there is. */

const isCode = (name: string): name is ErrorCode => name in ERROR_STATUS

const CODES = Object.keys(ERROR_STATUS).filter(isCode)

/** What its clients know each status by: https://docs.claude.com/en/api/errors. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'timeout_error',
  409: 'invalid_request_error',
  410: 'invalid_request_error',
  412: 'invalid_request_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

describe('errors on /v1/messages', () => {
  test.each(CODES)('%s has a type that its clients know, and all its headers', async (code) => {
    const error = new ApiError(code, 'It failed.', { param: 'model', headers: { allow: 'POST' } })
    const answer = errorReply(error, 'anthropic')
    const status = code === 'routes_unavailable' ? 529 : ERROR_STATUS[code]
    expect(answer.status).toBe(status)
    const problem = 'urn:ietf:params:ehbp:error:key-config'
    const isProblem = code === 'key_config_mismatch'
    expect(await answer.json()).toEqual({
      type: isProblem ? problem : 'error',
      ...(isProblem && { title: 'It failed.' }),
      error: { type: TYPES[status], message: expect.stringMatching(/\w/) },
    })
    expect(answer.headers.get('allow')).toBe('POST')
    expect(answer.headers.get('retry-after')).toBe(status === 429 ? '1' : null)
  })
})

/** What Codex asks for 5 times in place of 30: https://platform.openai.com/docs/guides/error-codes. */
const OVERLOADED = ['bad_gateway', 'routes_unavailable', 'sealed', 'service_unavailable']

const failing = (code: ErrorCode) =>
  new ApiError(code, 'It failed.', { param: 'model', retryAfter: 7 })

describe('errors on /v1/responses', () => {
  test.each(CODES.filter((code) => !OVERLOADED.includes(code)))(
    '%s is as elsewhere',
    async (code) => {
      const usual = errorReply(failing(code))
      const answer = errorReply(failing(code), 'responses')
      expect([answer.status, await answer.json()]).toEqual([usual.status, await usual.json()])
      expect(answer.headers.get('retry-after')).toBe('7')
    },
  )

  test('a prompt is in "input", whatever the member of the chat format that was checked', async () => {
    const error = new ApiError('context_length_exceeded', 'Too long.', { param: 'messages' })
    expect(await errorReply(error, 'responses').json()).toEqual({
      error: {
        message: 'Too long.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'input',
      },
    })
  })

  test.each(CODES.filter((code) => OVERLOADED.includes(code)))(
    '%s is an overload',
    async (code) => {
      const answer = errorReply(failing(code), 'responses')
      expect(answer.status).toBe(503)
      // Codex asks 30 times where it is told when to ask again; the SDKs read this one.
      expect(answer.headers.get('retry-after')).toBeNull()
      expect(answer.headers.get('retry-after-ms')).toBe('7000')
      expect(await answer.json()).toEqual({
        error: {
          message: 'It failed.',
          type: 'server_error',
          code: 'server_is_overloaded',
          service_code: code,
          param: 'model',
        },
      })
    },
  )
})

test('clients of /v1/responses are told of an answer that is too long as of one that no repeat mends', () => {
  expect(failureCode('answer_too_long')).toBe('invalid_prompt')
})

describe('errors of all formats', () => {
  test.each(CODES)('%s says whether the same request is worth another try', (code) => {
    const lasting = ['route_not_priced', 'unauthorized', 'key_expired', 'session_ended'].includes(
      code,
    )
    for (const format of ['openai', 'responses', 'anthropic'] as const) {
      const answer = errorReply(new ApiError(code, 'It failed.'), format)
      expect(answer.headers.get('x-should-retry')).toBe(lasting ? 'false' : null)
    }
  })

  test.each([
    ['/v1/messages', 'anthropic'],
    ['/v1/messages/count_tokens', 'anthropic'],
    ['/v1/messages/batches', 'anthropic'],
    ['/v1/responses', 'responses'],
    ['/v1/responses/resp_1', 'responses'],
    ['/v1/messagesx', 'openai'],
    ['/v1/chat/completions', 'openai'],
    ['/', 'openai'],
  ])('%s has errors in the form of %s', (path, format) => {
    expect(errorFormatAt(path)).toBe(format)
  })
})
