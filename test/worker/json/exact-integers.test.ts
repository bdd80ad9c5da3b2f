import { describe, expect, test } from 'vitest'
import {
  holdsRounded,
  isExactInteger,
  parseToWrite,
} from '../../../src/worker/json/exact-integers.ts'

describe('JSON that is only written again', () => {
  test.each([
    '{"id":12345678901234567891}',
    '[-9007199254740993,[9007199254740993],{"a":9007199254740992}]',
    '{"__proto__":12345678901234567891,"a":"12345678901234567891"}',
    '12345678901234567891',
    'null',
  ])('is the same text: %s', (text) => {
    expect(JSON.stringify(parseToWrite(text))).toBe(text)
  })

  test('has other numbers as JavaScript writes them', () => {
    const text = '{"a":1234567890123456.50,"b":1e2,"c":12345678901234567891}'
    const written = '{"a":1234567890123456.5,"b":100,"c":12345678901234567891}'
    expect(JSON.stringify(parseToWrite(text))).toBe(written)
  })

  test('that is none is refused as by JSON.parse', () => {
    expect(() => parseToWrite('{"a":12345678901234567891')).toThrow(SyntaxError)
  })
})

test.each<[unknown, boolean]>([
  [2 ** 53 - 1, false],
  [2 ** 53, true],
  [-(2 ** 53), true],
  [0.5, false],
  ['12345678901234567891', false],
  [null, false],
  [undefined, false],
  [{ a: [1, { b: 2 ** 60 }] }, true],
  [{ a: [1, { b: 'x' }] }, false],
])('whether %j holds a rounded integer: %s', (value, expected) => {
  expect(holdsRounded(value)).toBe(expected)
})

test.each<[unknown, boolean]>([
  [parseToWrite('12345678901234567891'), true],
  [parseToWrite('{"a":12345678901234567891}'), false],
  [parseToWrite('12'), false],
  [null, false],
])('whether %j is an integer that is written as it was: %s', (value, expected) => {
  expect(isExactInteger(value)).toBe(expected)
})
