import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { parseInParts, TooManyValues } from '../../../src/worker/json/parse-in-parts.ts'
import { JsonSyntaxError, MAX_NESTING } from '../../../src/worker/json/scan.ts'

const MIB = 1024 * 1024

/** Parses in parts of a few bytes unless told otherwise, and counts the pauses. */
async function parse(text: string | Uint8Array<ArrayBuffer>, partBytes = 8) {
  let pauses = 0
  const pause = async () => void (pauses += 1)
  const bytes = typeof text === 'string' ? utf8(text) : text
  const value = await parseInParts(bytes, { partBytes, maxMemoryBytes: 96 * MIB, pause })
  return { value, pauses }
}

const refusalOf = (text: string | Uint8Array<ArrayBuffer>, partBytes?: number) =>
  parse(text, partBytes).then(
    ({ value }) => ({ value }),
    (error: unknown) => (error instanceof Error ? error.name : error),
  )

describe('a text that is parsed in parts', () => {
  test('has the values that `JSON.parse` finds, whatever the size of the parts', async () => {
    const container = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()))
    const spaces = fc.constantFrom('', ' ', '\n\t')
    await fc.assert(
      fc.asyncProperty(container, spaces, fc.integer({ min: 0, max: 64 }), async (...of) => {
        const [given, space, partBytes] = of
        const text = `${space}${JSON.stringify(given, null, space)}${space}`
        expect((await parse(text, partBytes)).value).toStrictEqual(JSON.parse(text))
      }),
      { numRuns: 500 },
    )
  })

  test('is refused exactly where `JSON.parse` refuses it, whichever byte was changed', async () => {
    const text = String.raw`{"a": [1, {"b\"": "x]},"}, [[], {}], null], "c": {"d": [true, -1.5e3]}}`
    const bytes = fc.integer({ min: 0, max: text.length - 1 })
    const byte = fc.constantFrom(...'{}[],:"\\ 0x'.split(''), '')
    await fc.assert(
      fc.asyncProperty(bytes, byte, fc.integer({ min: 0, max: 24 }), async (at, to, partBytes) => {
        const changed = text.slice(0, at) + to + text.slice(at + 1)
        const expected = parsed(changed)
        expect(await refusalOf(changed, partBytes)).toStrictEqual(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  test('keeps the last of members with one name, and `__proto__` as a name like any other', async () => {
    const text = '{"a": 1, "__proto__": {"x": 1}, "b": [1, 2, 3, 4, 5, 6], "a": 2, "": 3, "1": 4}'
    const { value } = await parse(text, 4)
    expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)))
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  test.each([
    ['nothing between two commas', '[1111111111,,2]'],
    ['a comma at the end', '[1111111111,]'],
    ['a member without a value', '{"aaaaaaaaaa": 1,,"b": 2}'],
    ['a name without a colon', '{"a" [1111111111, 2222222222]}'],
    ['something after a list', '[[1111111111, 2222222222] 3, 4]'],
    ['two lists without a comma', '[[1111111111, 2222222222][3333333333, 4]]'],
    ['a bracket of the other kind', '[1111111111, 2}'],
    ['no end', '[1111111111, [2'],
    ['a string without an end', '["1111111111, 2]'],
    ['two values', '[1111111111] [2]'],
    ['a value that is no container', '1111111111'],
    ['something before it', 'x[1111111111, 2]'],
    ['bytes that are no UTF-8', new Uint8Array([0x5b, 0x22, 0xff, 0x22, 0x5d])],
    ['a byte order mark inside', '[1111111111,\uFEFF2]'],
  ])('is refused with %s', async (_what, text) => {
    expect(await refusalOf(text)).toBe(JsonSyntaxError.name)
  })

  test(`may be nested ${MAX_NESTING} deep, and no deeper`, async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(await refusalOf(nested(MAX_NESTING))).toStrictEqual({
      value: JSON.parse(nested(MAX_NESTING)),
    })
    expect(await refusalOf(nested(MAX_NESTING + 1))).toBe(JsonSyntaxError.name)
  })

  test('has no part that is much larger than requested, however its values are nested', async () => {
    const partBytes = 1024
    const list = (of: string) => `[${Array.from({ length: 100 }, () => of).join(',')}]`
    // Each level has just too little for a part of its own before the next level begins.
    const levels = 60
    const chain = `[${'1,'.repeat(500)}`.repeat(levels) + '1' + ']'.repeat(levels)
    for (const text of [list(list('"ab"')), list('{"a": [1, 2, {"b": 3}]}'), chain]) {
      const { value, pauses } = await parse(text, partBytes)
      expect(value).toStrictEqual(JSON.parse(text))
      expect(pauses).toBeGreaterThan(text.length / (3 * partBytes))
    }
  })
})

describe('the memory of the values of a text', () => {
  const sixteen = 16 * MIB

  test.each([
    ['empty objects', `[${'{},'.repeat(sixteen / 3)}{}]`],
    ['empty lists', `[${'[],'.repeat(sixteen / 3)}[]]`],
    ['digits', `[${'1,'.repeat(sixteen / 2)}1]`],
  ])('is bounded: 16 MiB of %s are refused', async (_what, text) => {
    expect(await refusalOf(text, 64 * 1024)).toBe(TooManyValues.name)
  })

  test('allows 16 MiB of log probabilities, each token with 20 alternatives as short as can be', async () => {
    const alternative = { token: 'a', logprob: -1, bytes: [97] }
    const token = { ...alternative, top_logprobs: Array.from({ length: 20 }, () => alternative) }
    const count = Math.floor(sixteen / (JSON.stringify(token).length + 1))
    const text = `[${Array.from({ length: count }, () => JSON.stringify(token)).join(',')}]`
    const { value, pauses } = await parse(text, 64 * 1024)
    expect(value).toHaveLength(count)
    expect(pauses).toBeGreaterThan(200)
  }, 60_000)
})

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { value } : JsonSyntaxError.name
  } catch {
    return JsonSyntaxError.name
  }
}
