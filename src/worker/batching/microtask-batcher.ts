import type { BatchDeps, BatchRules } from './batcher.ts'
import { microtasksEnd } from './microtasks.ts'

/** Rules of calls that only one request makes at a time; that request limits their time. */
export type MicrotaskBatchRules<Item, Answer> = Omit<
  BatchRules<Item, Answer>,
  'joinTimeoutMs' | 'timeoutError'
>

/**
 * Maximum age of a batch that items may join, ms. It is longer than a run of microtasks takes: the runtime has ended the
 * request of an older batch, which is never sent.
 */
const MAX_BATCH_AGE_MS = 100

/**
 * Sends in one call what one request asks for in one run of microtasks. Usually that request runs a batch of other requests'
 * work (`coalescer.ts`), which limits the time for all of it, so nothing here waits for other requests or measures time. A
 * request without such a batch (an operator settles a quarantined settlement) makes the call for itself alone.
 */
export function createMicrotaskBatcher<Item, Answer>(
  { now, keepAlive }: BatchDeps,
  { run, maxItems, size }: MicrotaskBatchRules<Item, Answer>,
): (item: Item) => Promise<Answer> {
  let open: Batch<Item, Answer> | undefined

  async function lead(batch: Batch<Item, Answer>): Promise<void> {
    await microtasksEnd()
    if (open === batch) open = undefined
    try {
      answerAll(batch, await run(batch.items))
    } catch (error) {
      for (const { reject } of batch.waiting) reject(error)
    }
  }

  function batchFor(itemSize: number): Batch<Item, Answer> {
    if (open !== undefined && mayJoin(open, itemSize)) return open
    const batch: Batch<Item, Answer> = { openedAt: now(), items: [], size: 0, waiting: [] }
    open = batch
    keepAlive(lead(batch))
    return batch
  }

  function mayJoin(batch: Batch<Item, Answer>, itemSize: number): boolean {
    const fits = size === undefined || batch.size + itemSize <= size.max
    const age = now() - batch.openedAt
    return fits && batch.items.length < maxItems && age >= 0 && age < MAX_BATCH_AGE_MS
  }

  return (item) => {
    const itemSize = size?.of(item) ?? 0
    const batch = batchFor(itemSize)
    batch.size += itemSize
    batch.items.push(item)
    return new Promise((resolve, reject) => {
      batch.waiting.push({ resolve, reject })
    })
  }
}

interface Batch<Item, Answer> {
  /** Ms. */
  readonly openedAt: number
  readonly items: Item[]
  size: number
  /** The promise functions of each item. */
  readonly waiting: {
    readonly resolve: (answer: Answer) => void
    readonly reject: (error: unknown) => void
  }[]
}

function answerAll<Item, Answer>(
  { waiting }: Batch<Item, Answer>,
  answers: readonly Answer[],
): void {
  for (const [index, { resolve, reject }] of waiting.entries()) {
    const answer = answers[index]
    if (answer === undefined) reject(new Error('internal error: an item of a batch got no answer'))
    else resolve(answer)
  }
}
