import { describe, expect, test } from 'vitest'
import { frontLimits, openRequestsFor } from '../../../src/host/front/limits.ts'

describe('the descriptors of a worker', () => {
  test.each([
    [16_384, 1_075],
    [65_536, 4_516],
    [Number.POSITIVE_INFINITY, 10_000],
  ])('%d files carry %d requests', (files, requests) => {
    expect(openRequestsFor(files)).toBe(requests)
  })

  test.each([16_384, 20_000, 65_536])('are enough for all that %d files admit', (files) => {
    const { relayed } = frontLimits(files, 1, undefined)
    expect(relayed).toBeGreaterThan(openRequestsFor(files))
    expect(1_024 + 2 * relayed + 10 * openRequestsFor(files)).toBeLessThanOrEqual(files)
  })
})

describe('the descriptors of the supervisor', () => {
  test.each([
    [20_000, 1],
    [65_536, 4],
    [65_536, 64],
  ])('%d of them are enough for %d fronts', (files, fronts) => {
    const { connections, relayed } = frontLimits(files, fronts, undefined)
    expect(connections).toBeGreaterThan(relayed)
    expect(1_024 + fronts * (connections + relayed)).toBeLessThanOrEqual(files)
  })
})

describe('one source', () => {
  test('has a quarter of what the worker carries', () => {
    const { perSource, relayed } = frontLimits(20_000, 1, undefined)
    expect(perSource).toBe(Math.ceil(relayed / 4))
  })

  test('has what the operator says', () => {
    expect(frontLimits(20_000, 1, 7).perSource).toBe(7)
  })
})
