/**
 * A long-lived map with short-lived entries, which releases a value as soon as its entry is taken out. A `Map` does
 * not: V8 gives it a new table each time some tens of entries have been added and removed, and the former tables of an
 * old map stay in memory, with everything that was in them, until the next full collection. With some tens of open
 * calls, every second call was kept with its body, although nothing could reach it any more
 * (docs/performance-findings.md, "Maps of open calls").
 */
export class BriefMap<Key, Value extends object> {
  /** The former tables refer to these cells, too, so a cell is emptied when its value is taken out. */
  readonly #cells = new Map<Key, { value: Value | undefined }>()

  get size(): number {
    return this.#cells.size
  }

  has(key: Key): boolean {
    return this.#cells.has(key)
  }

  get(key: Key): Value | undefined {
    return this.#cells.get(key)?.value
  }

  /** Adds an entry under a key that has none. */
  add(key: Key, value: Value): void {
    if (this.#cells.has(key)) throw new Error('internal error: a second entry of one key')
    this.#cells.set(key, { value })
  }

  /** Takes an entry out; undefined where there is none. */
  take(key: Key): Value | undefined {
    const cell = this.#cells.get(key)
    if (cell === undefined) return undefined
    this.#cells.delete(key)
    const { value } = cell
    cell.value = undefined
    return value
  }

  /** The entries in the order in which they were added. */
  *[Symbol.iterator](): Generator<[Key, Value]> {
    for (const [key, { value }] of this.#cells) if (value !== undefined) yield [key, value]
  }
}
