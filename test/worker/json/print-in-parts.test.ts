import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { printInParts } from '../../../src/worker/json/print-in-parts.ts'
import { runAtOnce, runWithPauses } from '../../../src/worker/json/steps.ts'

async function print(value: object) {
  let pauses = 0
  const bytes = await runWithPauses(printInParts(value), async () => void (pauses += 1))
  return { text: fromUtf8(bytes), pauses }
}

describe('a value that is written in parts', () => {
  test('has the text that `JSON.stringify` gives it', () => {
    const container = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()))
    fc.assert(
      fc.property(container, (value) => {
        const wide = [value, Array.from({ length: 5_000 }, () => value), { value, left: undefined }]
        for (const one of [value, wide, { wide, tail: '\ud800é' }]) {
          expect(fromUtf8(runAtOnce(printInParts(one)))).toBe(JSON.stringify(one))
        }
      }),
      { numRuns: 12 },
    )
  })

  test.each([
    ['many small elements', Array.from({ length: 100_000 }, (_, index) => ({ index }))],
    [
      'few large elements',
      Array.from({ length: 20 }, () => Array.from({ length: 10_000 }, () => 1)),
    ],
    ['elements of both kinds', [1, Array.from({ length: 200_000 }, () => 'x'), 2, {}]],
    ['nested elements', [[[Array.from({ length: 200_000 }, () => null)]]]],
  ])('is written in many parts: %s', async (_what, elements) => {
    const value = { id: 'x', left: undefined, elements, empty: {}, none: [] }
    const { text, pauses } = await print(value)
    expect(text === JSON.stringify(value)).toBe(true)
    expect(pauses).toBeGreaterThan(40)
  })
})

test('a small value is written without a pause', async () => {
  const value = { id: 'x', choices: [{ message: { content: 'Hello.' } }] }
  expect(await print(value)).toEqual({ text: JSON.stringify(value), pauses: 0 })
})
