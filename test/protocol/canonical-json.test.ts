import { describe, expect, test } from 'vitest'
import { canonicalJson } from '../../src/protocol/canonical-json.ts'

describe('canonical JSON', () => {
  test('sorts members by UTF-16 code units and prints as RFC 8785 section 3.2 shows', () => {
    const value = {
      numbers: [333_333_333.333_333_3, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
    const keys = {
      '\u20ac': 5,
      '\r': 1,
      '\ufb33': 7,
      '1': 2,
      '\u{1f600}': 6,
      '\u0080': 3,
      '\u00f6': 4,
    }
    expect(canonicalJson(keys)).toBe(
      '{"\\r":1,"1":2,"\u0080":3,"\u00f6":4,"\u20ac":5,"\u{1f600}":6,"\ufb33":7}',
    )
  })

  test('leaves out undefined members', () => {
    expect(canonicalJson({ b: undefined, a: [] })).toBe('{"a":[]}')
  })

  test('refuses what JSON cannot carry', () => {
    expect(() => canonicalJson({ a: Number.NaN })).toThrow(new TypeError('not a JSON number'))
    expect(() => canonicalJson(['\ud800'])).toThrow(new TypeError('lone surrogate'))
  })
})
