import { describe, expect, test } from 'vitest'
import { readResponseId } from '../../../src/worker/stream/response-id.ts'

describe('readResponseId', () => {
  test.each(['chatcmpl-1', 'é', 'x'.repeat(256), '\u{1F600}'])('takes %j', (id) => {
    expect(readResponseId(id)).toBe(id)
  })

  test.each([
    ['a lone surrogate', 'id-\ud800'],
    ['more than a mebibyte', 'x'.repeat(1_048_577)],
    ['one character too many', 'x'.repeat(257)],
    ['nothing', ''],
    ['a number', 7],
    ['no id', undefined],
  ])('takes %s for none', (_what, id) => {
    expect(readResponseId(id)).toBeUndefined()
  })
})
