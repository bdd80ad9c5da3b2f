import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decimalOf,
  divideHalfEven,
  formatDecimal,
  formatNano,
  ONE,
  parseDecimal,
  parseNano,
  totalOf,
} from '../../src/protocol/money.ts'

describe('decimals', () => {
  test.each([
    ['0.60', { digits: 60n, scale: 2 }],
    ['12', { digits: 12n, scale: 0 }],
    ['-0.5', { digits: -5n, scale: 1 }],
    ['1e-7', { digits: 1n, scale: 7 }],
    ['1.25e+3', { digits: 1250n, scale: 0 }],
    ['1e21', { digits: 10n ** 21n, scale: 0 }],
  ])('%s is read exactly', (text, decimal) => {
    expect(parseDecimal(text)).toEqual(decimal)
  })

  test.each(['', '.5', '5.', '+1', '1_000', '0x10', 'NaN', 'Infinity', ' 1', '1e', '1,5', '١'])(
    '%j is no decimal',
    (text) => {
      expect(() => parseDecimal(text)).toThrow(new TypeError('not a decimal number'))
    },
  )

  test('a number is kept as it is written, not as its double', () => {
    expect(formatDecimal(decimalOf(0.1))).toBe('0.1')
    expect(formatDecimal(decimalOf(0.00000025))).toBe('0.00000025')
    expect(formatDecimal(decimalOf(1_000_000))).toBe('1000000')
  })

  test('printing what was read gives the same value', () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 25n), 10n ** 25n), fc.nat(20), (digits, scale) => {
        const again = parseDecimal(formatDecimal({ digits, scale }))
        const common = Math.max(scale, again.scale)
        expect(again.digits * 10n ** BigInt(common - again.scale)).toBe(
          digits * 10n ** BigInt(common - scale),
        )
      }),
    )
  })
})

describe('amounts', () => {
  test.each([
    [0n, '0'],
    [1n, '0.000000001'],
    [-1n, '-0.000000001'],
    [1_500_000_000n, '1.5'],
    [10_000_000_000n, '10'],
    [9_007_199_254_740_993n, '9007199.254740993'],
    [8_999_999_999_999_999_999n, '8999999999.999999999'],
  ])('%d nano-EUR is printed as %s', (nano, text) => {
    expect(formatNano(nano)).toBe(text)
    expect(parseNano(text)).toBe(nano)
  })

  test.each(['1e3', '+1', '1.', '.1', '0.0000000001', '', ' 1', '12345678901', '1 ', '--1'])(
    '%j is refused as an amount, never rounded into one',
    (text) => {
      expect(() => parseNano(text)).toThrow(new TypeError('not an amount of money'))
    },
  )
})

describe('rounding', () => {
  test.each([
    [5n, 10n, 0n],
    [15n, 10n, 2n],
    [25n, 10n, 2n],
    [35n, 10n, 4n],
    [26n, 10n, 3n],
    [24n, 10n, 2n],
    [-5n, 10n, 0n],
    [-15n, 10n, -2n],
    [-16n, 10n, -2n],
    [7n, 1n, 7n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
  ])('%d / %d is %d, half to even', (numerator, denominator, result) => {
    expect(divideHalfEven(numerator, denominator)).toBe(result)
  })

  test('a denominator that is not positive is refused', () => {
    expect(() => divideHalfEven(1n, 0n)).toThrow(new RangeError('the denominator must be positive'))
  })

  test('the result is never more than half away', () => {
    const positive = fc.bigInt(1n, 10n ** 12n)
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 24n), 10n ** 24n), positive, (numerator, denominator) => {
        const distance = 2n * (divideHalfEven(numerator, denominator) * denominator - numerator)
        expect(distance <= denominator && -distance <= denominator).toBe(true)
      }),
    )
  })
})

describe('bills', () => {
  const price = decimalOf(0.6)

  test('lines are summed before the one rounding', () => {
    // 0.4 + 0.4 nano: each alone rounds to nothing, together they are one.
    const lines = [
      { count: 1, price: decimalOf(0.0004) },
      { count: 1, price: decimalOf(0.0004) },
    ]
    expect(totalOf({ lines, per: 1_000_000, discountPct: 0, rate: ONE })).toBe(1n)
  })

  test.each([-1, 0.5, 2 ** 53, Number.NaN])('%d is refused as a count', (count) => {
    const bill = { lines: [{ count, price }], per: 1, discountPct: 0, rate: ONE }
    expect(() => totalOf(bill)).toThrow(new RangeError('not a count'))
  })

  test('a bill of no lines is zero', () => {
    expect(totalOf({ lines: [], per: 60, discountPct: 10, rate: ONE })).toBe(0n)
  })
})
