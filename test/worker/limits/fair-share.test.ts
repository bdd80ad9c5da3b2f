import { describe, expect, test } from 'vitest'
import { FairShare } from '../../../src/worker/limits/fair-share.ts'

/** Takes one at a time until it is refused, and returns how many it took. */
function fill(share: FairShare, owner: string): number {
  for (let taken = 0; ; taken++) if (share.take(owner, 1) !== 'taken') return taken
}

describe('what is shared', () => {
  test('goes to one owner alone by half', () => {
    const share = new FairShare(100)
    expect(fill(share, 'a')).toBe(50)
    expect(share.take('a', 1)).toBe('share')
    expect(share.take('b', 1)).toBe('taken')
  })

  test('leaves something for the next, however greedy the others are', () => {
    const share = new FairShare(1_000)
    for (const owner of ['a', 'b', 'c', 'd', 'e']) fill(share, owner)
    expect(fill(share, 'well-behaved')).toBeGreaterThan(10)
  })

  test('is almost evenly dealt among owners who ask in turn', () => {
    const share = new FairShare(1_000)
    const owners = ['a', 'b', 'c', 'd', 'e']
    const taken = new Map(owners.map((owner) => [owner, 0]))
    for (let round = 0; round < 1_000; round++) {
      for (const owner of owners) {
        if (share.take(owner, 1) === 'taken') taken.set(owner, (taken.get(owner) ?? 0) + 1)
      }
    }
    for (const count of taken.values()) expect(count).toBeGreaterThanOrEqual(165)
    expect(share.taken).toBeLessThan(1_000)
  })

  test('is not given for an amount that is no number', () => {
    const share = new FairShare(10)
    expect(share.take('a', Number.NaN)).toBe('full')
    expect(share.take('a', 10)).toBe('taken')
    expect(share.take('b', 1)).toBe('full')
    expect(share.taken).toBe(10)
  })

  test('is never more than there is, and comes back', () => {
    const share = new FairShare(10)
    expect(share.take('a', 11)).toBe('full')
    expect(share.take('a', 10)).toBe('taken')
    expect(share.take('b', 1)).toBe('full')
    share.giveBack('a', 10)
    expect(share.taken).toBe(0)
    expect(share.take('b', 10)).toBe('taken')
  })
})
