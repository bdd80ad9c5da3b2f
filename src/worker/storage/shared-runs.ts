import { startDeadline } from '../batching/deadline-timer.ts'

/** Items that came in one call and wait for a run. */
interface WaitingItems<Item, Answer> {
  readonly items: readonly Item[]
  readonly done: (answers: readonly Answer[]) => void
}

export interface SharedRunRules<Item, Answer> {
  /** Answers all items, in order; never rejects. */
  readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** Maximum number of concurrent runs. */
  readonly maxRuns: number
  /** Maximum number and total size (`sizeOf`) of items in one run; a single call beyond it runs alone. */
  readonly maxItems: number
  readonly maxSize: number
  readonly sizeOf: (item: Item) => number
  /**
   * Deadline for items that have to wait for a run, ms, including the run. Items that start at once are limited only by the
   * run itself.
   */
  readonly deadlineMs: number
  /** Ms. */
  readonly now: () => number
  /** The answer for an item that took too long. If its run has begun, the item may still be carried out. */
  readonly timeoutAnswer: Answer
}

/**
 * Carries out items in a limited number of concurrent runs. Items that arrive while all runs are busy share the next run:
 * the longer runs take, the more items share the cost of one.
 */
export function createSharedRuns<Item, Answer>(
  rules: SharedRunRules<Item, Answer>,
): (items: readonly Item[]) => Promise<readonly Answer[]> {
  const waiting: WaitingItems<Item, Answer>[] = []
  let busy = 0

  function start(): void {
    while (busy < rules.maxRuns && waiting.length > 0) {
      busy += 1
      void serve(takeFitting(waiting, rules)).finally(() => {
        busy -= 1
        start()
      })
    }
  }

  async function serve(calls: readonly WaitingItems<Item, Answer>[]): Promise<void> {
    const answers = await rules.run(calls.flatMap(({ items }) => items))
    let from = 0
    for (const { items, done } of calls) {
      done(answers.slice(from, from + items.length))
      from += items.length
    }
  }

  return async (items) => {
    if (items.length === 0) return []
    const { promise, resolve } = Promise.withResolvers<readonly Answer[]>()
    const own = { items, done: resolve }
    waiting.push(own)
    start()
    if (!waiting.includes(own)) return promise
    const timer = startDeadline(rules.deadlineMs, rules.now, () => {
      const index = waiting.indexOf(own)
      if (index >= 0) waiting.splice(index, 1)
      resolve(items.map(() => rules.timeoutAnswer))
    })
    try {
      return await promise
    } finally {
      timer.stop()
    }
  }
}

/** Takes the items of the first call, and those of later calls that fit in the same run. */
function takeFitting<Item, Answer>(
  waiting: WaitingItems<Item, Answer>[],
  { maxItems, maxSize, sizeOf }: SharedRunRules<Item, Answer>,
): readonly WaitingItems<Item, Answer>[] {
  let [count, size] = [0, 0]
  let end = 0
  for (const { items } of waiting) {
    count += items.length
    for (const item of items) size += sizeOf(item)
    if (end > 0 && (count > maxItems || size > maxSize)) break
    end += 1
  }
  return waiting.splice(0, end)
}
