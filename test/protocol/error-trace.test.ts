import { describe, expect, test } from 'vitest'
import { traceError } from '../../src/protocol/error-trace.ts'

class RouteBroken extends Error {
  override readonly name = 'RouteBroken'
}

describe('traceError', () => {
  test('names class, code and location, and nothing of the message', () => {
    const secret = 'the prompt was: tell me everything'
    const trace = traceError(Object.assign(new RouteBroken(secret), { code: 'ECONNREFUSED' }))
    expect(trace).toMatchObject({ error: 'RouteBroken', error_code: 'ECONNREFUSED' })
    expect(trace.frames[0]).toMatch(/error-trace\.test\.ts:\d+:\d+/)
    expect(trace.frames.length).toBeLessThanOrEqual(8)
    expect(JSON.stringify(trace)).not.toContain('prompt')
  })

  test.each([
    'first line\n    at secret (file:1:2)',
    '\n    at secret (file:1:2)',
    'x\n\n    at secret (file:1:2)\n',
    '',
  ])('is not fooled by a message that looks like a stack: %j', (message) => {
    const trace = traceError(new Error(message))
    expect(JSON.stringify(trace)).not.toContain('secret')
    expect(trace.frames[0]).toContain('error-trace.test.ts')
  })

  test('has no frames where the message was changed after the stack was taken', () => {
    const error = new Error('first\n    at secret (file:1:2)')
    expect(error.stack).toContain('secret')
    error.message = 'second'
    expect(traceError(error).frames).toEqual([])
  })

  test('takes the code of the cause, and no code or name that could be text', () => {
    const cause = Object.assign(new Error('x'), { code: 'SQLITE_FULL' })
    expect(traceError(new Error('y', { cause })).error_code).toBe('SQLITE_FULL')
    const odd = Object.assign(new Error('y'), { code: 'my key is sk-1', name: 'a secret name' })
    expect(traceError(odd)).toMatchObject({ error: 'Error' })
    expect(traceError(odd).error_code).toBeUndefined()
  })

  test.each([
    ['a text', 'string'],
    [undefined, 'undefined'],
    [null, 'object'],
  ])('tells no more than the type of %j', (thrown, error) => {
    expect(traceError(thrown)).toEqual({ error, frames: [] })
  })
})
