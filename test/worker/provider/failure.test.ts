import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import {
  AttemptFailure,
  classifyResponse,
  classifyTranscriptionResponse,
} from '../../../src/worker/provider/failure.ts'

const NONE = new Headers()
const chat = (status: number, body: string | object = '') =>
  classifyResponse(status, NONE, utf8(typeof body === 'string' ? body : JSON.stringify(body)), 0)
const transcription = (status: number, body: string | object = '') =>
  classifyTranscriptionResponse(
    status,
    NONE,
    utf8(typeof body === 'string' ? body : JSON.stringify(body)),
    0,
  ).kind

describe('classifyResponse', () => {
  it.each([
    [401, 'unauthorized_upstream'],
    [402, 'unauthorized_upstream'],
    [403, 'unauthorized_upstream'],
    [404, 'unauthorized_upstream'],
    [408, 'unavailable'],
    [429, 'rate_limited'],
    [500, 'unclassified'],
    [501, 'unclassified'],
    [502, 'unavailable'],
    [503, 'unavailable'],
    [504, 'unavailable'],
    [520, 'unclassified'],
    [522, 'unavailable'],
    [529, 'unavailable'],
    [204, 'unclassified'],
    [302, 'unclassified'],
    [418, 'unclassified'],
    [599, 'unclassified'],
  ])('takes %d for %s', (status, kind) => {
    expect(chat(status, { error: { code: 'context_length_exceeded' } })).toEqual({ kind, status })
  })

  it.each([400, 413, 422])('looks into the body of a %d', (status) => {
    expect(chat(status, 'prompt is too long')).toEqual({ kind: 'context_length', status })
    expect(chat(status, 'content_filter')).toEqual({ kind: 'content_policy', status })
    expect(chat(status)).toEqual({ kind: 'rejected', status })
  })

  it.each([
    [{ error: { message: 'requires moderation and your input was flagged' } }, 'content_policy'],
    [{ error: { code: 'content_policy_violation' } }, 'content_policy'],
    [
      { error: { message: 'Your organization violates our usage policies' } },
      'unauthorized_upstream',
    ],
    [{ error: { message: 'This API key is disabled by a guardrail' } }, 'unauthorized_upstream'],
    [{ error: { code: 'context_length_exceeded' } }, 'unauthorized_upstream'],
    ['forbidden', 'unauthorized_upstream'],
  ])('takes a 403 that says %j for %s', (body, kind) => {
    expect(chat(403, body)).toEqual({ kind, status: 403 })
    expect(transcription(403, body)).toBe(kind)
  })

  it('hands on how long to wait', () => {
    const headers = new Headers({ 'retry-after': '3' })
    expect(classifyResponse(429, headers, utf8(''), 0)).toEqual({
      kind: 'rate_limited',
      status: 429,
      retryAfterMs: 3_000,
    })
  })
})

describe('classifyTranscriptionResponse', () => {
  it.each([
    ['a file refused', 400, { error: { message: 'Invalid file format.' } }, 'file_rejected'],
    [
      'a file refused by a framework',
      422,
      { detail: [{ loc: ['body', 'file'], msg: 'Bad.' }] },
      'file_rejected',
    ],
    ['a refusal without a reason', 400, '', 'file_rejected'],
    ['a refusal in words', 400, { error: 'failed to read audio' }, 'file_rejected'],
    ['a refusal in HTML', 422, '<html>', 'file_rejected'],
    [
      'another field refused',
      400,
      { error: { message: 'Bad.', param: 'language' } },
      'unclassified',
    ],
    [
      'another field refused by a framework',
      422,
      { detail: [{ loc: ['body', 'temperature'], msg: 'Bad.' }] },
      'unclassified',
    ],
    ['an unknown model', 400, { error: { message: 'No.', param: 'model' } }, 'unclassified'],
    ['a file too large', 413, '', 'file_too_large'],
    ['a file of the wrong type', 415, '', 'file_type_rejected'],
    ['a rate limit', 429, '', 'rate_limited'],
    ['a wrong key', 401, '', 'unauthorized_upstream'],
    ['an overload', 503, '', 'unavailable'],
    ['a fault', 500, '', 'unclassified'],
  ])('classifies %s', (_, status, body, kind) => {
    expect(transcription(status, body)).toBe(kind)
  })
})

describe('AttemptFailure', () => {
  it('says kind and status and nothing else', () => {
    expect(new AttemptFailure({ kind: 'rejected', status: 422 }).message).toBe(
      'attempt failed: rejected 422',
    )
    expect(new AttemptFailure({ kind: 'timeout' }).message).toBe('attempt failed: timeout')
  })
})
