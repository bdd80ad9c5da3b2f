import { describe, expect, test } from 'vitest'
import { MalformedEvidence } from '../../src/protocol/malformed-evidence.ts'
import { parseStrictJson } from '../../src/protocol/strict-json.ts'

const refuse = (input: string | Uint8Array) => {
  try {
    return parseStrictJson(input, 'document')
  } catch (error) {
    return error instanceof MalformedEvidence ? error.message : error
  }
}

describe('strict JSON', () => {
  test('reads what JSON.parse reads', () => {
    const text = '{"a":[1,-2.5e3,"\\u00e9{\\"",true,null],"b":{"a":{}}, "c" : "d:,{"}'
    expect(parseStrictJson(text, 'document')).toEqual(JSON.parse(text))
  })

  test.each(['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"x":{"b":1, "c":2 , "b" :3}}]'])(
    'refuses a member that stands there twice: %s',
    (text) => {
      expect(refuse(text)).toBe('malformed document: duplicate member name')
    },
  )

  test('distinguishes members of the same name in different objects, and strings from names', () => {
    const text = '{"a":{"a":"a"},"b":["a","a",{"a":1},{"a":2}]}'
    expect(refuse(text)).toEqual(JSON.parse(text))
  })

  test('refuses __proto__, deep nesting, bytes that are not UTF-8, and what is not JSON', () => {
    expect(refuse('{"__proto__":{}}')).toBe('malformed document: forbidden member name')
    expect(refuse('['.repeat(65) + ']'.repeat(65))).toBe(
      'malformed document: nested deeper than 64',
    )
    expect(refuse(Uint8Array.of(0x22, 0xff, 0x22))).toBe('malformed document: not UTF-8')
    for (const text of ['', '{', "{'a':1}", '{"a":1,}', '\u{feff}{}', 'NaN']) {
      expect(refuse(text)).toBe('malformed document: not JSON')
    }
    expect(refuse('['.repeat(64) + ']'.repeat(64))).toBeInstanceOf(Array)
  })

  test.each([
    String.raw`{"note":"\ud800"}`,
    String.raw`{"\uDFFF":1}`,
    String.raw`["\ud83d \ude00"]`,
    '["\ud800"]',
  ])('refuses half of a surrogate pair: %s', (text) => {
    expect(refuse(text)).toBe('malformed document: half of a surrogate pair')
    expect(parseStrictJson(text, 'answer', { halfPairs: 'accept' })).toEqual(JSON.parse(text))
  })

  test('reads millions of escapes and spaces as it reads few, and finds what is wrong behind them', () => {
    const escapes = String.raw`\n`.repeat(5_000_000)
    const spaces = ' '.repeat(10_000_000)
    expect(refuse(`{"a":"${escapes}"}`)).toEqual({ a: '\n'.repeat(5_000_000) })
    expect(refuse(`{"${escapes}":1,"a"${spaces}:2,"a":3}`)).toBe(
      'malformed document: duplicate member name',
    )
    expect(refuse(String.raw`["${escapes}","\ud800"]`)).toBe(
      'malformed document: half of a surrogate pair',
    )
  })

  test('reads whole pairs, and backslashes before what only looks like half of one', () => {
    const text = String.raw`{"\ud83d\ude00":"\ud83d\ude00","b":"\\ud800"}`
    expect(refuse(text)).toEqual({ '😀': '😀', b: String.raw`\ud800` })
  })
})
