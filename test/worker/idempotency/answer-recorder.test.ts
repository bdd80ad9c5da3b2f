import { expect, test } from 'vitest'
import { AnswerRecorder } from '../../../src/worker/idempotency/answer-recorder.ts'
import { RequestCap } from '../../../src/worker/limits/request-cap.ts'
import { refusalOf } from '../../support/refusal.ts'

const MEMORY = 1_000_000

test('an answer without memory is not recorded, and its request, which goes on, still holds what it had', () => {
  const cap = new RequestCap(10, MEMORY)
  const permit = cap.enter('greedy')
  permit.takeMemory(480_000)
  const recorder = new AnswerRecorder((bytes, ifRefused) => permit.takeMemory(bytes, ifRefused))
  recorder.add(new Uint8Array(60_000))
  expect(recorder.complete).toBe(false)
  expect(recorder.whole(new Uint8Array(1))).toBeUndefined()
  const other = cap.enter('other')
  expect(refusalOf(() => other.takeMemory(MEMORY - 480_000 + 1))).toMatchObject({
    code: 'service_unavailable',
  })
  other.takeMemory(MEMORY - 480_000)
})
