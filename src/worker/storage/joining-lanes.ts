import { startDeadline } from '../batching/deadline-timer.ts'

/** Things to do that came together. */
export interface Load<Item, Answer> {
  readonly items: readonly Item[]
  readonly done: (answers: readonly Answer[]) => void
}

export interface LaneRules<Item, Answer> {
  /** Answers all items, in order; never rejects. */
  readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** How many runs may be under way at a time. */
  readonly lanes: number
  /** Maximum number of items in one run, and of characters; one item beyond it runs alone. */
  readonly maxItems: number
  readonly maxSize: number
  readonly sizeOf: (item: Item) => number
  /** How long items that have to wait for a lane may take in all, ms. A run keeps the time of items that need not wait. */
  readonly deadlineMs: number
  /** Ms. */
  readonly now: () => number
  /** The answer of an item that took too long. If its run has begun, it may be carried out all the same. */
  readonly late: Answer
}

/**
 * Runs items that come while every lane is busy together, as soon as one is free: the busier the lanes, the more items share
 * the cost of one run.
 */
export function createJoiningLanes<Item, Answer>(
  rules: LaneRules<Item, Answer>,
): (items: readonly Item[]) => Promise<readonly Answer[]> {
  const waiting: Load<Item, Answer>[] = []
  let busy = 0

  function start(): void {
    while (busy < rules.lanes && waiting.length > 0) {
      busy += 1
      void serve(takeFitting(waiting, rules)).finally(() => {
        busy -= 1
        start()
      })
    }
  }

  async function serve(loads: readonly Load<Item, Answer>[]): Promise<void> {
    const answers = await rules.run(loads.flatMap(({ items }) => items))
    let from = 0
    for (const { items, done } of loads) {
      done(answers.slice(from, from + items.length))
      from += items.length
    }
  }

  return async (items) => {
    if (items.length === 0) return []
    const { promise, resolve } = Promise.withResolvers<readonly Answer[]>()
    const load = { items, done: resolve }
    waiting.push(load)
    start()
    if (!waiting.includes(load)) return promise
    const timer = startDeadline(rules.deadlineMs, rules.now, () => {
      const index = waiting.indexOf(load)
      if (index >= 0) waiting.splice(index, 1)
      resolve(items.map(() => rules.late))
    })
    try {
      return await promise
    } finally {
      timer.stop()
    }
  }
}

/** Takes the first load, and those after it that fit beside it. */
function takeFitting<Item, Answer>(
  waiting: Load<Item, Answer>[],
  { maxItems, maxSize, sizeOf }: LaneRules<Item, Answer>,
): readonly Load<Item, Answer>[] {
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
