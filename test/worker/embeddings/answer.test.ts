import { expect, test } from 'vitest'
import { readEmbeddings } from '../../../src/worker/embeddings/answer.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'

const asked = (base64: boolean) => ({ inputs: 1, base64, dimensions: undefined })

function read(embedding: unknown, base64: boolean) {
  const answer = { data: [{ index: 0, embedding }] }
  return runAtOnce(readEmbeddings(answer, asked(base64))).vectors
}

const malformed = expect.objectContaining({ constructor: BrokenStream, reason: 'malformed' })

test('numbers become base64 of float32, and numbers stay as they are', () => {
  expect(read([1, -0.5], true)).toEqual(['AACAPwAAAL8='])
  expect(read([1, -0.5], false)).toEqual([[1, -0.5]])
})

test.each([[[1e39]], [[-1e39, 1]]])(
  '%j, beyond float32, never reaches a client as infinity',
  (v) => {
    expect(() => read(v, true)).toThrow(malformed)
    expect(() => read(v, false)).toThrow(malformed)
  },
)

test.each([['AACAfw=='], ['AAA='], [''], [[]], [[null]], [['1']], [{}]])('%j is no vector', (v) => {
  expect(() => read(v, true)).toThrow(malformed)
  expect(() => read(v, false)).toThrow(malformed)
})
