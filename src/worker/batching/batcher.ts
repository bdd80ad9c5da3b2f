import { startDeadline, type After } from './deadline-timer.ts'
import { platformTurn, waitForJoiners } from './joiners.ts'
import { microtasksEnd } from './microtasks.ts'

export interface BatchRules<Item, Answer> {
  /** Answers all items, in order, in one call. When it throws, every item fails with that error. */
  readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** Maximum number of items in one call. */
  readonly maxItems: number
  /** Size of an item, and the maximum total size of one call; an item above the maximum is sent alone. */
  readonly size?: { readonly of: (item: Item) => number; readonly max: number }
  /** How long the items that joined another request's call wait for their answers, ms. */
  readonly joinTimeoutMs: number
  /**
   * Makes the error of an item whose answer did not arrive in time, or whose batch was lost with the request that led it.
   */
  readonly timeoutError: () => Error
}

/** What batching needs from the runtime. */
export interface BatchDeps {
  /** Ms. */
  readonly now: () => number
  /** Keeps the current request alive until this work has ended, even after its own answer is sent. */
  readonly keepAlive: (work: Promise<unknown>) => void
  /** Number of open requests; absent where that is unknown. */
  readonly openRequests?: (() => number) | undefined
}

/**
 * Sends the items of many requests in one call, because a call to another object or over TLS costs far more than its
 * content. The first item opens a batch and sends it once all requests that are ready have joined; later items open the next
 * batch. Batches do not wait for each other.
 *
 * The call belongs to the request that opened the batch (the leader), which is kept alive for it. If the runtime ends the
 * leader anyway, it rejects the promise that the first follower awaits; that follower then fails all others. No item joins a
 * batch that is older than `FRESH_MS`.
 * @returns adds an item and resolves to its answer; `callAfter` measures how long its request waits
 */
export function createBatcher<Item, Answer>(
  host: BatchDeps,
  rules: BatchRules<Item, Answer>,
): (item: Item, callAfter?: After) => Promise<Answer> {
  let open: Batch<Item, Answer> | undefined
  const gathering = { ...host, maxItems: rules.maxItems }

  async function lead(batch: Batch<Item, Answer>): Promise<void> {
    await microtasksEnd()
    await waitForJoiners(batch, gathering)
    if (open === batch) open = undefined
    const outcome = await outcomeOf(rules.run, batch.items)
    batch.settle(outcome)
    tellAll(batch, outcome)
  }

  async function begin(item: Item, size: number): Promise<Answer> {
    const batch = newBatch<Item, Answer>(item, size, host.now())
    open = batch
    host.keepAlive(lead(batch))
    return answerAt(await batch.outcome, 0)
  }

  async function join(
    batch: Batch<Item, Answer>,
    item: Item,
    size: number,
    callAfter?: After,
  ): Promise<Answer> {
    batch.size += size
    const index = batch.items.push(item) - 1
    const { promise, resolve } = Promise.withResolvers<Outcome<Answer>>()
    const fail = () => resolve(failure(rules))
    const failAll = () => {
      // Otherwise requests that join later would get no outcome.
      if (open === batch) open = undefined
      fail()
      tellAll(batch, failure(rules))
    }
    // Resolving a promise of a request that has ended makes the runtime log a warning that is not JSON, so this one is
    // detached first.
    let leave: () => void
    if (index > 1) {
      batch.followers.push(resolve)
      leave = () => void batch.followers.splice(batch.followers.indexOf(resolve), 1)
    } else {
      const settled = batch.outcome.then(resolve, failAll)
      // Kept alive for one more event loop turn, because the runtime enters a request twice for a promise of another
      // request.
      leave = () => host.keepAlive(settled.then(platformTurn))
    }
    // The timer also keeps the request alive: the runtime ends a request as hung that awaits only promises of other
    // requests.
    const passed = () => {
      leave()
      fail()
    }
    const timer = startDeadline(rules.joinTimeoutMs, host.now, passed, callAfter)
    const outcome = await promise
    timer.stop()
    return answerAt(outcome, index)
  }

  return (item, callAfter) => {
    const size = rules.size?.of(item) ?? 0
    const batch = open && isFresh(open, host.now()) ? open : undefined
    if (batch === undefined || !hasRoom(batch, size, rules)) return begin(item, size)
    return join(batch, item, size, callAfter)
  }
}

type Outcome<Answer> =
  | { readonly ok: true; readonly answers: readonly Answer[] }
  | { readonly ok: false; readonly error: unknown }

interface Batch<Item, Answer> {
  readonly openedAt: number
  readonly items: Item[]
  size: number
  /**
   * Awaited by the leader and the first follower. Only the runtime rejects it, when the leader is lost; the first follower
   * then fails the others.
   */
  readonly outcome: Promise<Outcome<Answer>>
  readonly settle: Tell<Answer>
  /**
   * The other followers. Each awaits a promise of its own request, for which the runtime enters the request only once; for a
   * promise of another request it does so twice.
   */
  readonly followers: Tell<Answer>[]
}

type Tell<Answer> = (outcome: Outcome<Answer>) => void

function newBatch<Item, Answer>(first: Item, size: number, openedAt: number): Batch<Item, Answer> {
  const { promise, resolve } = Promise.withResolvers<Outcome<Answer>>()
  return { openedAt, items: [first], size, outcome: promise, settle: resolve, followers: [] }
}

/** Whether items may still join the batch. Its age is negative after the clock was set back. */
function isFresh({ openedAt }: Pick<Batch<never, never>, 'openedAt'>, now: number): boolean {
  return now >= openedAt && now - openedAt < FRESH_MS
}

function hasRoom(
  batch: Pick<Batch<unknown, never>, 'items' | 'size'>,
  size: number,
  rules: Pick<BatchRules<never, never>, 'maxItems' | 'size'>,
): boolean {
  const fits = rules.size === undefined || batch.size + size <= rules.size.max
  return fits && batch.items.length < rules.maxItems
}

function tellAll<Item, Answer>({ followers }: Batch<Item, Answer>, outcome: Outcome<Answer>): void {
  for (const tell of followers) tell(outcome)
}

function answerAt<Answer>(outcome: Outcome<Answer>, index: number): Answer {
  if (!outcome.ok) throw outcome.error
  const answer = outcome.answers[index]
  if (answer === undefined) throw new Error('internal error: an item of a batch got no answer')
  return answer
}

async function outcomeOf<Item, Answer>(
  run: BatchRules<Item, Answer>['run'],
  items: readonly Item[],
): Promise<Outcome<Answer>> {
  try {
    return { ok: true, answers: await run(items) }
  } catch (error) {
    return { ok: false, error }
  }
}

function failure({ timeoutError }: Pick<BatchRules<never, never>, 'timeoutError'>) {
  return { ok: false, error: timeoutError() } as const
}

/** Maximum age of a batch that items may join, ms: far longer than waiting for joiners takes. */
const FRESH_MS = 100
