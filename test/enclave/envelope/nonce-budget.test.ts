import { describe, expect, it } from 'vitest'
import { createNonceBudget } from '../../../src/enclave/envelope/nonce-budget.ts'

const LIMITS = { perSource: 4, inAll: 12, windowMs: 1_000 }

describe('the budget of nonces', () => {
  it('gives one source its share in any window', () => {
    const may = createNonceBudget(LIMITS)
    expect([0, 1, 2, 3, 4].map((at) => may('a', at))).toEqual([true, true, true, true, false])
    expect(may('b', 4)).toBe(true)
    expect(may('a', 999)).toBe(false)
    expect(may('a', 1_000)).toBe(true)
    expect(may('a', 1_000)).toBe(false)
  })

  it('keeps a third for those who have had nothing, whatever the others ask', () => {
    const may = createNonceBudget(LIMITS)
    const greedy = Array.from({ length: 50 }, (_, index) => may(`greedy ${index % 3}`, 0))
    expect(greedy.filter(Boolean)).toHaveLength(8)
    const newcomers = ['b', 'c', 'd', 'e'].map((source) => may(source, 1))
    expect(newcomers).toEqual([true, true, true, true])
    expect(may('b', 1)).toBe(false)
  })

  it('bounds all sources together', () => {
    const may = createNonceBudget(LIMITS)
    const given = Array.from({ length: 50 }, (_, index) => may(`source ${index}`, 0))
    expect(given.filter(Boolean)).toHaveLength(12)
    expect(may('one more', 999)).toBe(false)
    expect(may('one more', 1_000)).toBe(true)
  })
})
