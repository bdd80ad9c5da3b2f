/** Random choices that a seed repeats. */
export interface Dice {
  /** A number from 0 to below 1. */
  roll(): number
  /** A whole number from `low` to `high`. */
  between(low: number, high: number): number
  /** True once in so many throws. */
  oneIn(throws: number): boolean
  /** One of the list. @throws RangeError when it is empty */
  pick<Item>(list: readonly Item[]): Item
}

/** The generator "mulberry32": 32 bits of state, even enough for tests. */
export function createDice(seed: number): Dice {
  let state = seed
  const roll = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number) => low + Math.floor(roll() * (high - low + 1))
  return {
    roll,
    between,
    oneIn: (throws) => between(1, throws) === 1,
    pick: (list) => {
      const item = list[between(0, list.length - 1)]
      if (item === undefined) throw new RangeError('there is nothing to pick from')
      return item
    },
  }
}
