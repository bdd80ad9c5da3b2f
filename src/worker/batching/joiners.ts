/** A call that waits for other requests to join it. */
export interface Gathering {
  /** When it began, ms. */
  readonly openedAt: number
  readonly items: readonly unknown[]
}

/** What decides how long a call waits. */
export interface GatheringRules {
  /** Maximum number of items in one call. */
  readonly maxItems: number
  /** Number of open requests; absent where that is not known. */
  readonly openRequests?: (() => number) | undefined
  /** Ms. */
  readonly now: () => number
}

/** One quiet turn for each of so many open requests: with few of them, another turn costs more than the joiners it may bring. */
const REQUESTS_PER_TURN = 2

/** After this many quiet turns no further request joins. */
const MAX_QUIET_TURNS = 5

/** A steady flow of joiners delays the first no longer than this many turns, nor than this time and one turn, ms. */
const MAX_TURNS = 16
const MAX_WAIT_MS = 20

/**
 * Waits while other requests join a call: until nothing has joined for some turns of the event loop in a row, more of them the more
 * requests are open, or until all have joined. While the worker is busy, a turn takes as long as what it has to do, so a
 * call waits for what is about to join it; while it is idle, some turns take less than a tenth of a millisecond. A fixed time would
 * make calls wait even when no other comes (docs/performance-findings.md, "How long a shared call waits").
 * @param nextTurn resolves once the events that are ready now have run
 */
export async function waitForJoiners(
  { items, openedAt }: Gathering,
  { maxItems, openRequests, now }: GatheringRules,
  nextTurn = platformTurn,
): Promise<void> {
  let quiet = 0
  for (let turns = 0; turns < MAX_TURNS; turns += 1) {
    const before = items.length
    const most = Math.min(maxItems, openRequests?.() ?? Number.POSITIVE_INFINITY)
    if (before >= most || quiet >= quietTurns(openRequests?.())) return
    const waited = now() - openedAt
    if (waited < 0 || waited >= MAX_WAIT_MS) return
    await nextTurn()
    quiet = items.length === before ? quiet + 1 : 0
  }
}

function quietTurns(openRequests = 1): number {
  return Math.min(MAX_QUIET_TURNS, Math.ceil(openRequests / REQUESTS_PER_TURN))
}

/** Resolves once the events that are ready now have run. */
export function platformTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}
