import { describe, expect, test } from 'vitest'
import { openFilesLimit, openRequestsFor } from '../../../src/host/stack/runtime-check.ts'

describe('the number of requests that may be open', () => {
  test.each([
    [16_384, 1_280],
    [65_536, 5_376],
    [Number.POSITIVE_INFINITY, 10_000],
  ])('for %d files is %d', (files, requests) => {
    expect(openRequestsFor(files)).toBe(requests)
  })

  test('can be derived from the limit of this very process', () => {
    expect(openFilesLimit()).toBeGreaterThan(0)
  })
})
