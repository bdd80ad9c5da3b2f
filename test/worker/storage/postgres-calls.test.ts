import { describe, expect, it } from 'vitest'
import { roundsOf, type LedgerItem } from '../../../src/worker/storage/postgres-calls.ts'

const item = (customerId: string, entry: number, plans: string | null = null): LedgerItem => ({
  customerId,
  plans,
  entry: String(entry),
})

describe('the rounds of a call', () => {
  it('have at most one item of a customer each, in order', () => {
    const items = [
      item('a', 0),
      item('b', 1),
      item('a', 2),
      item('c', 3),
      item('a', 4),
      item('b', 5),
    ]
    const { rounds, order } = roundsOf(items)
    expect(JSON.parse(rounds)).toEqual([
      { plans: null, entries: [0, 1, 3] },
      { plans: null, entries: [2, 5] },
      { plans: null, entries: [4] },
    ])
    expect(order).toEqual([0, 1, 3, 2, 5, 4])
  })

  it('have one set of plans each, so that a new configuration never decides for an old one', () => {
    const items = [item('a', 0, '{"v":1}'), item('b', 1, '{"v":2}'), item('a', 2, '{"v":2}')]
    const { rounds, order } = roundsOf(items)
    expect(JSON.parse(rounds)).toEqual([
      { plans: { v: 1 }, entries: [0] },
      { plans: { v: 2 }, entries: [1, 2] },
    ])
    expect(order).toEqual([0, 1, 2])
  })

  it('of nothing are none', () => {
    expect(roundsOf([])).toEqual({ rounds: '[]', order: [] })
  })
})
