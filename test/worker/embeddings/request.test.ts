import { expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { parseEmbeddingsRequest } from '../../../src/worker/embeddings/request.ts'

const parse = (input: unknown, model: unknown = 'm') =>
  parseEmbeddingsRequest(utf8(JSON.stringify({ model, input })))

function refusalOf(input: unknown, model?: unknown): unknown[] {
  try {
    parse(input, model)
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.details.param, error.message]
    throw error
  }
  return expect.unreachable()
}

const REFUSAL = [
  'invalid_request_error',
  'input',
  '"input" must be a text, a list of texts, a list of token ids or a list of such lists, none of them empty.',
]

test.each([['a'], [['a', 'b']], [[1, 2]], [[[1], [2, 3]]]])('%j is an input', (input) => {
  expect(parse(input).forwarded).toEqual({ input })
})

test.each([
  [''],
  [[]],
  [['']],
  [['a', 1]],
  [[1, 'a']],
  [[-1]],
  [[0.5]],
  [[[]]],
  [[[1], 2]],
  [[[1], ['a']]],
  [{}],
  [7],
])('%j is no input', (input) => {
  expect(refusalOf(input)).toEqual(REFUSAL)
})

test('two million wrong entries are refused without a description of each', () => {
  // Descriptions take more than a kilobyte for each entry, which no process has.
  const input = Array.from({ length: 2_000_000 }, () => -1)
  expect(refusalOf(input)).toEqual(REFUSAL)
})

test.each([[''], [null]])('the model %j is missing, as on every other endpoint', (model) => {
  expect(refusalOf('a', model)).toEqual(['missing_field', 'model', '"model" is missing.'])
})

test('a model that is no text is refused as such', () => {
  const refusal = ['invalid_request_error', 'model', '"model" must be a string.']
  expect(refusalOf('a', 7)).toEqual(refusal)
})
