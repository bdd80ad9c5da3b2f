import { describe, expect, test } from 'vitest'
import { equalBytes } from '../../src/protocol/bytes.ts'

const DIGEST = Uint8Array.of(1, 2, 3, 4)

describe('bytes', () => {
  test('are equal to the same bytes in another place', () => {
    expect(equalBytes(DIGEST, Uint8Array.of(9, 1, 2, 3, 4).subarray(1))).toBe(true)
  })

  test.each([0, 1, 2, 3])('are not equal to others that differ in byte %i', (at) => {
    expect(equalBytes(DIGEST, DIGEST.with(at, 9))).toBe(false)
  })

  test.each([0, 1, 3])('are not equal to their own first %i bytes, on either side', (length) => {
    expect(equalBytes(DIGEST.subarray(0, length), DIGEST)).toBe(false)
    expect(equalBytes(DIGEST, DIGEST.subarray(0, length))).toBe(false)
  })

  test('are not equal to themselves with zeros after them, on either side', () => {
    const longer = Uint8Array.of(...DIGEST, 0, 0)
    expect(equalBytes(DIGEST, longer)).toBe(false)
    expect(equalBytes(longer, DIGEST)).toBe(false)
  })
})
