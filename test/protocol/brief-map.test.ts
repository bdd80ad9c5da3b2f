import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { BriefMap } from '../../src/protocol/brief-map.ts'

type Collect = (options: { type: 'minor' | 'major' }) => void

/** V8's own garbage collector. */
function collector(): Collect {
  setFlagsFromString('--expose-gc')
  const collect: Collect = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return collect
}

/** What only full collections take, bytes. */
function oldBytes(): number {
  const spaces = getHeapSpaceStatistics().filter((space) => space.space_name === 'old_space')
  return spaces.reduce((sum, space) => sum + space.space_used_size, 0)
}

/** Lets many values of 800 bytes pass through a map, of which 40 are in it at a time, and collects all but what is old. */
function passThrough(map: BriefMap<number, number[]>, collect: Collect): void {
  for (let at = 0; at < 10_000; at += 1) {
    map.add(
      at,
      Array.from({ length: 100 }, () => at),
    )
    map.take(at - 40)
    if (at % 250 === 0) collect({ type: 'minor' })
  }
}

describe('BriefMap', () => {
  it('gives out what was added, once', () => {
    const map = new BriefMap<number, string[]>()
    map.add(1, ['one'])
    map.add(2, ['two'])
    expect([map.size, map.has(1), map.has(3), [...map]]).toEqual([
      2,
      true,
      false,
      [
        [1, ['one']],
        [2, ['two']],
      ],
    ])
    expect([map.take(1), map.take(1), map.take(3)]).toEqual([['one'], undefined, undefined])
    expect([map.size, map.has(1), [...map]]).toEqual([1, false, [[2, ['two']]]])
    map.add(1, ['again'])
    expect(map.take(1)).toEqual(['again'])
  })

  it('shows what is in it, as often as it is asked, and nothing that was taken out', () => {
    const map = new BriefMap<number, string[]>()
    const value = ['one']
    map.add(1, value)
    expect([map.get(1), map.get(1), map.get(2)]).toEqual([value, value, undefined])
    expect(map.get(1)).toBe(value)
    expect(map.size).toBe(1)
    map.take(1)
    expect(map.get(1)).toBeUndefined()
    map.add(1, ['again'])
    expect(map.get(1)).toEqual(['again'])
  })

  it('refuses a second entry of one key', () => {
    const map = new BriefMap<number, string[]>()
    map.add(1, ['one'])
    expect(() => map.add(1, ['other'])).toThrow('internal error: a second entry of one key')
    expect(map.take(1)).toEqual(['one'])
  })

  it('reports entries that are taken out meanwhile no more', () => {
    const map = new BriefMap<number, string[]>()
    for (const key of [1, 2, 3]) map.add(key, [String(key)])
    const seen: number[] = []
    for (const [key] of map) {
      seen.push(key)
      map.take(2)
    }
    expect(seen).toEqual([1, 3])
  })

  it('lets go of what was taken out without a full collection', () => {
    const collect = collector()
    const map = new BriefMap<number, number[]>()
    passThrough(map, collect)
    collect({ type: 'major' })
    const before = oldBytes()
    for (const [key] of map) map.take(key)
    passThrough(map, collect)
    expect(oldBytes() - before).toBeLessThan(2_000_000)
  })
})
