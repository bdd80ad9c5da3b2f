import { expect, test } from 'vitest'
import { tailLimitMs } from '../../../src/worker/stream/tail-limits.ts'

test('a stream has no limit of its own before its finish reason', () => {
  expect(tailLimitMs({ done: false, finishReason: undefined })).toBeUndefined()
})

test('usage may take five seconds after the finish reason, and what ends the stream one after usage', () => {
  expect(tailLimitMs({ done: false, finishReason: 'stop' })).toBe(5_000)
  expect(tailLimitMs({ done: true, finishReason: 'stop' })).toBe(1_000)
})
