import { describe, expect, test } from 'vitest'
import { expect as portableExpect } from './portable-vitest.ts'

describe('what stands in for vitest in workerd and browsers', () => {
  test('fails where vitest would', () => {
    const wrong = [
      () => portableExpect(1).toBe(2),
      () => portableExpect(['a: b']).toEqual([]),
      () => portableExpect([]).toEqual(['a']),
      () => portableExpect(['ab']).toEqual([portableExpect.stringMatching(/^b/)]),
      () => portableExpect({ a: 1 }).toMatchObject({ a: 2 }),
      () => portableExpect([1]).toHaveLength(2),
      () => portableExpect('abc').toMatch(/^b/),
      () => portableExpect(undefined).toMatch('b'),
      () => portableExpect(['a']).toContain('b'),
      () => portableExpect('abc').not.toContain('b'),
      () => portableExpect(1).not.toBe(1),
      () => portableExpect(null).toBeUndefined(),
      () => portableExpect(new Error('a')).toBeInstanceOf(TypeError),
      () => portableExpect(() => {}).toThrow(Error),
      () => portableExpect(() => {}).toThrow(),
      () => portableExpect(throwing('a')).not.toThrow(),
      () => portableExpect(throwing('a')).toThrow('b'),
      () => portableExpect(1).toBeGreaterThan(1),
      () => portableExpect(throwing('a')).toThrow(new TypeError('b')),
      () => portableExpect(throwing('a')).toThrow(new RangeError('a')),
    ]
    for (const claim of wrong) expect(claim).toThrow(/ expected /)
  })
  test('tells an error by its class and message', () => {
    const right = [undefined, 'a', TypeError, new TypeError('a')]
    for (const wanted of right) {
      expect(() => portableExpect(throwing('a')).toThrow(wanted)).not.toThrow()
    }
  })
})

function throwing(message: string): () => void {
  return () => {
    throw new TypeError(message)
  }
}
