/** A call that other requests may join before it is sent. */
export interface Gathering {
  /** When it was opened, ms since the epoch. */
  readonly openedAt: number
  readonly items: readonly unknown[]
}

/** What decides how long a call waits. */
export interface GatheringRules {
  /** Maximum number of items in one call. */
  readonly maxItems: number
  /** Number of open requests; absent where that is unknown. */
  readonly openRequests?: (() => number) | undefined
  /** Ms. */
  readonly now: () => number
}

/**
 * A call waits for one quiet turn per this many open requests: with few of them, another turn costs more than the joiners it
 * may bring.
 */
const REQUESTS_PER_TURN = 2

/** Maximum number of quiet turns to wait for. */
const MAX_QUIET_TURNS = 5

/**
 * A steady flow of joiners delays the first request by no more than this many turns, and no more than this time and one
 * turn, ms.
 */
const MAX_TURNS = 16
const MAX_WAIT_MS = 20

/**
 * Waits while other requests join a call: until nothing has joined for some event loop turns in a row (the more, the more
 * requests are open), or until all have joined. While the worker is busy, a turn takes as long as its pending work, so a
 * call waits for requests that are about to join; while it is idle, some turns take less than a tenth of a millisecond. A
 * fixed time would delay calls even when no other comes (docs/performance-findings.md, "How long a shared call waits").
 * @param nextTurn resolves after one event loop turn: once the events that are ready now have been handled
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

/** Resolves after one event loop turn: once the events that are ready now have been handled. */
export function platformTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}
