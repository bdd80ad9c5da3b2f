export interface BatchRules<Item, Answer> {
  /** Answers every item, in order, in one call. What it throws becomes the failure of each. */
  readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** How many items one call may carry. */
  readonly maxItems: number
  /** How large an item is, and how large all items of a call may be together; a larger one travels alone. */
  readonly size?: { readonly of: (item: Item) => number; readonly max: number }
  /** How long an item that travels in another request's call waits for its answer, ms. */
  readonly joinTimeoutMs: number
  /** What an item fails with whose answer did not come in time. */
  readonly timeoutError: () => Error
}

/** What batching needs of the runtime. */
export interface BatchHost {
  /** Ms. */
  readonly now: () => number
  /** Keeps the request that is at work alive until this has ended, whatever becomes of its own answer. */
  readonly keepAlive: (work: Promise<unknown>) => void
}

/**
 * Lets the items of many requests travel in one call, because a call between objects, or over TLS, costs far
 * more than what it carries. The first item of a moment opens a batch and sends it once the requests that are
 * ready have joined; later ones begin the next. Nobody waits for a batch before theirs.
 *
 * The call belongs to the request that opened the batch, which is kept alive for it. Should it be lost all the
 * same, those who joined fail after `joinTimeoutMs` at the latest, and nobody joins a batch that is not fresh.
 */
export function createBatcher<Item, Answer>(
  host: BatchHost,
  rules: BatchRules<Item, Answer>,
): (item: Item) => Promise<Answer> {
  let open: Batch<Item, Answer> | undefined

  async function lead(batch: Batch<Item, Answer>): Promise<void> {
    await whileOthersJoin(batch.items, rules.maxItems)
    if (open === batch) open = undefined
    try {
      batch.settle({ ok: true, answers: await rules.run(batch.items) })
    } catch (error) {
      batch.settle({ ok: false, error })
    }
  }

  function mayJoin(batch: Batch<Item, Answer>, size: number): boolean {
    const age = host.now() - batch.openedAt
    const fits = rules.size === undefined || batch.size + size <= rules.size.max
    return fits && batch.items.length < rules.maxItems && age >= 0 && age < FRESH_MS
  }

  return async (item) => {
    const size = rules.size?.of(item) ?? 0
    if (open !== undefined && mayJoin(open, size)) {
      const { items, outcome } = open
      open.size += size
      const index = items.push(item) - 1
      return answerAt(await inTime(outcome, rules), index)
    }
    const batch = newBatch<Item, Answer>(item, size, host.now())
    open = batch
    host.keepAlive(lead(batch))
    return answerAt(await batch.outcome, 0)
  }
}

type Outcome<Answer> =
  | { readonly ok: true; readonly answers: readonly Answer[] }
  | { readonly ok: false; readonly error: unknown }

interface Batch<Item, Answer> {
  readonly openedAt: number
  readonly items: Item[]
  size: number
  /** Never rejects: a rejection of a batch that nobody joined would be unhandled. */
  readonly outcome: Promise<Outcome<Answer>>
  readonly settle: (outcome: Outcome<Answer>) => void
}

function newBatch<Item, Answer>(first: Item, size: number, openedAt: number): Batch<Item, Answer> {
  const { promise, resolve } = Promise.withResolvers<Outcome<Answer>>()
  return { openedAt, items: [first], size, outcome: promise, settle: resolve }
}

function answerAt<Answer>(outcome: Outcome<Answer>, index: number): Answer {
  if (!outcome.ok) throw outcome.error
  const answer = outcome.answers[index]
  if (answer === undefined) throw new Error('internal error: an item of a batch got no answer')
  return answer
}

/** The outcome of another request's call. The runtime itself rejects what belongs to a request it has ended. */
async function inTime<Item, Answer>(
  outcome: Promise<Outcome<Answer>>,
  { joinTimeoutMs, timeoutError }: BatchRules<Item, Answer>,
): Promise<Outcome<Answer>> {
  const timedOut = Promise.withResolvers<Outcome<Answer>>()
  const timer = setTimeout(
    () => timedOut.resolve({ ok: false, error: timeoutError() }),
    joinTimeoutMs,
  )
  try {
    return await Promise.race([outcome, timedOut.promise])
  } catch {
    return { ok: false, error: timeoutError() }
  } finally {
    clearTimeout(timer)
  }
}

/** Waits while other items join, for a bounded number of turns: a steady flow must not delay the first item. */
async function whileOthersJoin(items: readonly unknown[], maxItems: number): Promise<void> {
  for (let turn = 0; turn < MAX_EVENT_LOOP_TURNS; turn += 1) {
    const before = items.length
    await nextTurn()
    if (items.length === before || items.length >= maxItems) return
  }
}

const MAX_EVENT_LOOP_TURNS = 4

/** Far longer than those turns take. */
const FRESH_MS = 100

/** Comes back once the events that are ready now have run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}
