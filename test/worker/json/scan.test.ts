import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concatBytes, fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import {
  MAX_NESTING,
  isNull,
  JsonCursor,
  JsonSyntaxError,
  valueOf,
} from '../../../src/worker/json/scan.ts'

function accepts(bytes: Uint8Array): boolean {
  const cursor = new JsonCursor(bytes)
  try {
    cursor.skip()
    cursor.end()
    return true
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}

function platformAccepts(bytes: Uint8Array): boolean {
  try {
    JSON.parse(fromUtf8(bytes))
    return true
  } catch {
    return false
  }
}

/** Rebuilds a value through the cursor alone. */
function rebuilt(cursor: JsonCursor, bytes: Uint8Array): unknown {
  const kind = cursor.peek()
  if (kind === 'object') {
    const entries: [string, unknown][] = []
    cursor.object((name) => entries.push([name, rebuilt(cursor, bytes)]))
    return Object.fromEntries(entries)
  }
  if (kind === 'array') {
    const elements: unknown[] = []
    cursor.array(() => elements.push(rebuilt(cursor, bytes)))
    return elements
  }
  return kind === 'string' ? cursor.string() : valueOf(bytes, cursor.skip())
}

const HARD_TEXTS = [
  '',
  ' ',
  '{}',
  '[]',
  ' { } ',
  '\t[\n]\r ',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{"a":1,}',
  '{,"a":1}',
  '{"a" 1}',
  '{"a":}',
  '{a:1}',
  "{'a':1}",
  '{"a":1 "b":2}',
  '{"a":1]',
  '[1}',
  '[',
  '{',
  '{"a"',
  '{"a":',
  '{"a":1',
  '"',
  '"abc',
  '"\\',
  '"\\u12',
  '"\\u12G4"',
  '"\\x41"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\u0000"',
  '"\u0000"',
  '"\n"',
  '"\u001f"',
  '"\u007f"',
  '"\u2028"',
  '0',
  '-0',
  '00',
  '01',
  '-',
  '-01',
  '+1',
  '.5',
  '1.',
  '1.e1',
  '1e',
  '1e+',
  '1E-05',
  '1e400',
  '0x10',
  '1_0',
  'NaN',
  'Infinity',
  '-Infinity',
  'true',
  'tru',
  'truex',
  'True',
  'nul',
  'null null',
  '1 1',
  '// c\n1',
  '/* c */1',
  '\u00a01',
  '\ufeff1',
  '1\u0000',
  '[1,2]x',
  '{"a":1}}',
  '"a" : 1',
]

describe('JsonCursor', () => {
  it.each(HARD_TEXTS)('agrees with JSON.parse on %j', (text) => {
    expect(accepts(utf8(text))).toBe(platformAccepts(utf8(text)))
  })

  it('accepts and rebuilds every JSON text', () => {
    const spaced = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t', '\n '))
    fc.assert(
      fc.property(spaced, ([value, indent]) => {
        const bytes = utf8(JSON.stringify(value, null, indent))
        const cursor = new JsonCursor(bytes)
        expect(rebuilt(cursor, bytes)).toEqual(JSON.parse(fromUtf8(bytes)))
        cursor.end()
      }),
    )
  })

  it('agrees with JSON.parse on texts with a few characters changed', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ',',
      ':',
      '\\',
      'u',
      '0',
      '-',
      '.',
      'e',
      '\n',
      'é',
    )
    const place = fc.nat()
    const edit = fc.record({ place, removed: fc.nat(3), piece })
    fc.assert(
      fc.property(fc.json(), fc.array(edit, { maxLength: 3 }), (json, edits) => {
        const text = edits.reduce((before, { place: at, removed, piece: put }) => {
          const index = at % (before.length + 1)
          return before.slice(0, index) + put + before.slice(index + removed)
        }, json)
        expect(accepts(utf8(text))).toBe(platformAccepts(utf8(text)))
      }),
      { numRuns: 2000 },
    )
  })

  it('agrees with the platform on any bytes within a string', () => {
    const high = fc.uint8Array({ maxLength: 6 }).map((bytes) => bytes.map((byte) => byte | 0x80))
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 6 }), high), (inside) => {
        const bytes = concatBytes(utf8('"'), inside, utf8('"'))
        expect(accepts(bytes)).toBe(platformAccepts(bytes))
      }),
      { numRuns: 5000 },
    )
  })

  it.each([
    ['an overlong slash', [0xc0, 0xaf]],
    ['an overlong of three bytes', [0xe0, 0x9f, 0xbf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['an overlong of four bytes', [0xf0, 0x8f, 0xbf, 0xbf]],
    ['a code point above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a lone continuation', [0x80]],
    ['a cut sequence', [0xe2, 0x82]],
    ['a byte that no sequence has', [0xff]],
  ])('refuses %s', (_, inside) => {
    const bytes = concatBytes(utf8('"'), Uint8Array.from(inside), utf8('"'))
    expect(() => new JsonCursor(bytes).skip()).toThrow(
      new JsonSyntaxError('unexpected input at byte 1'),
    )
  })

  it('reports decoded names, repeated ones each time, and the positions of values', () => {
    const text = '{ "\\u0061" : [1, 2] , "a":"\\ud800","é":null}'
    const bytes = utf8(text)
    const cursor = new JsonCursor(bytes)
    const seen: [string, string, string][] = []
    cursor.object((name, start) => {
      const value = cursor.skip()
      const slice = (from: number) => fromUtf8(bytes.subarray(from, value.end))
      seen.push([name, slice(start), slice(value.start)])
    })
    expect(seen).toEqual([
      ['a', '"\\u0061" : [1, 2]', '[1, 2]'],
      ['a', '"a":"\\ud800"', '"\\ud800"'],
      ['é', '"é":null', 'null'],
    ])
  })

  it('passes over what a visit only peeked at', () => {
    const cursor = new JsonCursor(utf8('{"a":\n [1, {"b": 2}] , "c" : 3}'))
    const kinds: string[] = []
    cursor.object(() => kinds.push(cursor.peek()))
    cursor.end()
    expect(kinds).toEqual(['array', 'number'])
  })

  it('gives the decoded length of a string in bytes of UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.boolean(), (text, escaped) => {
        const printed = JSON.stringify(text)
        const spelled = escaped ? printed.replaceAll(/[^\0-\x7f]/g, unicodeEscape) : printed
        expect(new JsonCursor(utf8(spelled)).textBytes()).toBe(utf8(text).length)
      }),
    )
  })

  it('nests to its limit and no deeper', () => {
    expect(accepts(nested(MAX_NESTING))).toBe(true)
    expect(() => new JsonCursor(nested(MAX_NESTING + 1)).skip()).toThrow(
      new JsonSyntaxError('nested deeper than 512 levels'),
    )
    expect(() => new JsonCursor(utf8('{"a":'.repeat(5_000_000))).skip()).toThrow(
      new JsonSyntaxError('nested deeper than 512 levels'),
    )
  })

  it('counts levels, not brackets', () => {
    expect(accepts(utf8(`[${'[],{},'.repeat(2000)}[]]`))).toBe(true)
  })
})

function nested(levels: number): Uint8Array {
  return utf8('['.repeat(levels) + ']'.repeat(levels))
}

function unicodeEscape(char: string): string {
  const units = Array.from({ length: char.length }, (_, index) => char.charCodeAt(index))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

describe('isNull', () => {
  it('distinguishes null from every other value', () => {
    const kinds = ['null', '"null"', 'true', '0', '[]', '{}'].map((text) => {
      const bytes = utf8(text)
      return isNull(bytes, new JsonCursor(bytes).skip())
    })
    expect(kinds).toEqual([true, false, false, false, false, false])
  })
})
