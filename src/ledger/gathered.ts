interface List<Item, Answer> {
  readonly items: readonly Item[]
  readonly resolve: (answers: readonly Answer[]) => void
}

/** Combines lists of items from separate calls, to be carried out together. */
export class Gathered<Item, Answer> {
  readonly #lists: List<Item, Answer>[] = []

  get isEmpty(): boolean {
    return this.#lists.length === 0
  }

  /** Adds a list; resolves to its answers, in order. */
  add(items: readonly Item[]): Promise<readonly Answer[]> {
    const { promise, resolve } = Promise.withResolvers<readonly Answer[]>()
    this.#lists.push({ items, resolve })
    return promise
  }

  /**
   * Carries out the oldest lists in one run, and answers each with its own part.
   * @param atMost the number of lists
   * @throws what `run` throws
   */
  async carryOut(
    atMost: number,
    run: (items: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<void> {
    const lists = this.#lists.splice(0, atMost)
    if (lists.length === 0) return
    const answers = await run(lists.flatMap(({ items }) => items))
    let next = 0
    for (const { items, resolve } of lists) {
      resolve(answers.slice(next, next + items.length))
      next += items.length
    }
  }
}
