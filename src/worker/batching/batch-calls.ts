export interface BatchRules<Ask, Answer> {
  /** Answers every ask, in order, in one call. What it throws becomes the failure of each. */
  readonly run: (asks: readonly Ask[]) => Promise<readonly Answer[]>
  /** How many asks one call may carry. */
  readonly most: number
  /** How long an ask that travels in another request's call waits for its answer, ms. */
  readonly patienceMs: number
  /** What an ask fails with whose answer did not come in time. */
  readonly late: () => Error
}

/** What batching needs of the runtime. */
export interface BatchHost {
  /** Ms. */
  readonly now: () => number
  /** Keeps the request that is at work alive until this has ended, whatever becomes of its own answer. */
  readonly keepAlive: (work: Promise<unknown>) => void
}

/**
 * Lets the asks of many requests travel in one call, because a call between objects, or over TLS, costs far
 * more than what it carries. The first ask of a moment opens a batch and sends it once the requests that are
 * ready have joined; later ones begin the next. Nobody waits for a batch before theirs.
 *
 * The call belongs to the request that opened the batch, which is kept alive for it. Should it be lost all the
 * same, those who joined fail after `patienceMs` at the latest, and nobody joins a batch that is not fresh.
 */
export function batchCalls<Ask, Answer>(
  host: BatchHost,
  rules: BatchRules<Ask, Answer>,
): (ask: Ask) => Promise<Answer> {
  let open: Batch<Ask, Answer> | undefined

  async function lead(batch: Batch<Ask, Answer>): Promise<void> {
    await whileOthersJoin(batch.asks, rules.most)
    if (open === batch) open = undefined
    try {
      batch.settle({ ok: true, answers: await rules.run(batch.asks) })
    } catch (error) {
      batch.settle({ ok: false, error })
    }
  }

  function mayJoin(batch: Batch<Ask, Answer>): boolean {
    const age = host.now() - batch.openedAt
    return batch.asks.length < rules.most && age >= 0 && age < FRESH_MS
  }

  return async (ask) => {
    if (open !== undefined && mayJoin(open)) {
      const { asks, outcome } = open
      const index = asks.push(ask) - 1
      return answerAt(await inTime(outcome, rules), index)
    }
    const batch = newBatch<Ask, Answer>(ask, host.now())
    open = batch
    host.keepAlive(lead(batch))
    return answerAt(await batch.outcome, 0)
  }
}

type Outcome<Answer> =
  | { readonly ok: true; readonly answers: readonly Answer[] }
  | { readonly ok: false; readonly error: unknown }

interface Batch<Ask, Answer> {
  readonly openedAt: number
  readonly asks: Ask[]
  /** Never rejects: a batch that nobody joined has nobody to hear of it. */
  readonly outcome: Promise<Outcome<Answer>>
  readonly settle: (outcome: Outcome<Answer>) => void
}

function newBatch<Ask, Answer>(first: Ask, openedAt: number): Batch<Ask, Answer> {
  const { promise, resolve } = Promise.withResolvers<Outcome<Answer>>()
  return { openedAt, asks: [first], outcome: promise, settle: resolve }
}

function answerAt<Answer>(outcome: Outcome<Answer>, index: number): Answer {
  if (!outcome.ok) throw outcome.error
  const answer = outcome.answers[index]
  if (answer === undefined) throw new Error('internal error: an ask was left unanswered')
  return answer
}

/** The outcome of another request's call. The runtime itself rejects what belongs to a request it has ended. */
async function inTime<Ask, Answer>(
  outcome: Promise<Outcome<Answer>>,
  { patienceMs, late }: BatchRules<Ask, Answer>,
): Promise<Outcome<Answer>> {
  const tooLate = Promise.withResolvers<Outcome<Answer>>()
  const timer = setTimeout(() => tooLate.resolve({ ok: false, error: late() }), patienceMs)
  try {
    return await Promise.race([outcome, tooLate.promise])
  } catch {
    return { ok: false, error: late() }
  } finally {
    clearTimeout(timer)
  }
}

/** Waits as long as others join, but only for some turns: a steady flow shall not hold up who came first. */
async function whileOthersJoin(asks: readonly unknown[], most: number): Promise<void> {
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const before = asks.length
    await nextTurn()
    if (asks.length === before || asks.length >= most) return
  }
}

const MOST_TURNS = 4

/** Far longer than those turns take. */
const FRESH_MS = 100

/** Comes back once the events that are ready now have run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}
