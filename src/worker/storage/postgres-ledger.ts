import { messageOf } from './batch-outcome.ts'
import type { PoolUser } from './connection-pool.ts'
import { createJoiningLanes } from './joining-lanes.ts'
import {
  roundsOf,
  type LedgerAnswer,
  type LedgerEnd,
  type LedgerFunction,
  type LedgerItem,
} from './postgres-calls.ts'
import { callFunction } from './postgres-batch.ts'
import type { PostgresConnection } from './postgres-connection.ts'
import { StorageUnavailable } from './database.ts'
import { causeOf, classifyPostgresError, isLockTimeout } from './postgres-errors.ts'

export interface PostgresLedger {
  /**
   * Carries out operations together; the answers are in their order. None waits long for another's row: one whose row is
   * locked is not carried out. It never rejects.
   */
  together(name: LedgerFunction, items: readonly LedgerItem[]): Promise<readonly LedgerAnswer[]>
  /**
   * Carries out one operation that was answered `locked`: it waits as long as an operation may take, for its row or for the one
   * of its customer that does. It never rejects.
   */
  alone(name: LedgerFunction, item: LedgerItem): Promise<LedgerEnd>
}

export interface PostgresLedgerDeps {
  /** Gives exclusive use of a connection, and repeats what lost to another transaction. */
  readonly onConnection: <Result>(
    user: PoolUser,
    work: (connection: PostgresConnection) => Promise<Result>,
  ) => Promise<Result>
  /** How long an operation may take, ms. */
  readonly deadlineMs: number
}

const FUNCTIONS: Readonly<
  Record<LedgerFunction, { readonly sql: string; readonly lanes: number }>
> = {
  admit: { sql: callOf('cmr_admit_v2'), lanes: 2 },
  settle: { sql: callOf('cmr_settle_v2'), lanes: 2 },
  release: { sql: callOf('cmr_release_v2'), lanes: 1 },
}

/** How long a call for several customers waits for the row of one of them, ms. */
const LOCK_WAIT_MS = 250

/** How long each of them then waits by itself, ms: who gets the row only later waits alone. */
const PROBE_WAIT_MS = 1

const LOCKED: LedgerAnswer = { locked: true }

const TOO_SLOW: LedgerEnd = { ok: false, unavailable: true, message: 'the database is too slow' }

/** A call delays others by some tens of milliseconds at most. */
const MAX_ITEMS = 128
const MAX_CHARACTERS = 4 * 1024 * 1024

/** An idle connection may have been cut unnoticed, so a call is tried on so many. */
const MAX_CONNECTIONS = 3

/**
 * The ledger's operations in calls of the database's functions: one round trip and one commit for all that wait.
 *
 * Where the call is refused, or the row of one customer stays locked, each operation is carried out by itself, so that none
 * fails or waits because of another. One whose row is locked then waits alone, and others of its customer wait for it, on no
 * connection. Once it has had the row they join all others again; where it gave up, the next of them waits for the row. Every
 * operation may be repeated, so one whose connection is lost is.
 */
export function createPostgresLedger(deps: PostgresLedgerDeps): PostgresLedger {
  /** The customers of whom an operation waits for the row, and its end. */
  const waiting = new Map<string, Promise<LedgerEnd>>()

  async function waitForRow(name: LedgerFunction, item: LedgerItem): Promise<LedgerEnd> {
    const { customerId } = item
    const user = { owner: customerId, reads: false, waits: true }
    const end = callFor(deps, name, item, { user, lockMs: deps.deadlineMs }).catch(failureOf)
    waiting.set(customerId, end)
    try {
      return await end
    } finally {
      waiting.delete(customerId)
    }
  }

  const laneOf = (name: LedgerFunction) =>
    createJoiningLanes<LedgerItem, LedgerAnswer>({
      run: (items) => callTogether(deps, name, items),
      lanes: FUNCTIONS[name].lanes,
      maxItems: MAX_ITEMS,
      maxSize: MAX_CHARACTERS,
      sizeOf: ({ entry }) => entry.length,
      deadlineMs: deps.deadlineMs,
      late: TOO_SLOW,
    })
  const lanes = { admit: laneOf('admit'), settle: laneOf('settle'), release: laneOf('release') }

  const together: PostgresLedger['together'] = async (name, items) => {
    const free = items.filter(({ customerId }) => !waiting.has(customerId))
    const answers = await lanes[name](free)
    if (free.length === items.length) return answers
    const known = new Map(free.map((item, index) => [item, answers[index]]))
    return items.map((item) => (known.has(item) ? (known.get(item) ?? missing()) : LOCKED))
  }

  async function alone(
    name: LedgerFunction,
    item: LedgerItem,
    isLate: () => boolean,
  ): Promise<LedgerEnd> {
    while (!isLate()) {
      const ahead = waiting.get(item.customerId)
      // oxlint-disable no-await-in-loop -- after the wait the row may be locked again
      if (ahead === undefined) return await waitForRow(name, item)
      const end = await ahead
      const hadRow = end.ok || !end.unavailable
      // Joined while the row is still locked, they would delay all others once more.
      const [answer = missing()] = hadRow && !isLate() ? await together(name, [item]) : [LOCKED]
      // oxlint-enable no-await-in-loop
      if (!('locked' in answer)) return answer
    }
    return TOO_SLOW
  }

  return {
    together,
    alone: (name, item) => inTime(deps.deadlineMs, (isLate) => alone(name, item, isLate)),
  }
}

/** The end of an operation, or a failure once its time is up. */
async function inTime(
  deadlineMs: number,
  operation: (isLate: () => boolean) => Promise<LedgerEnd>,
): Promise<LedgerEnd> {
  const { promise: late, resolve } = Promise.withResolvers<LedgerEnd>()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    resolve(TOO_SLOW)
  }, deadlineMs)
  try {
    return await Promise.race([operation(() => isLate), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Carries out operations in one call, or each by itself where one keeps the others from it. Never rejects. */
async function callTogether(
  deps: PostgresLedgerDeps,
  name: LedgerFunction,
  items: readonly LedgerItem[],
): Promise<readonly LedgerAnswer[]> {
  try {
    return await call(deps, name, items, { user: ofAll(name), lockMs: LOCK_WAIT_MS })
  } catch (error) {
    const separable = isLockTimeout(error) || classifyPostgresError(error) === 'refused'
    if (separable) return Promise.all(items.map((item) => callUnlessLocked(deps, name, item)))
    return items.map(() => failureOf(error))
  }
}

/** On the connections of the calls for all, as the customer's own may all wait for that row. */
async function callUnlessLocked(
  deps: PostgresLedgerDeps,
  name: LedgerFunction,
  item: LedgerItem,
): Promise<LedgerAnswer> {
  try {
    return await callFor(deps, name, item, { user: ofAll(name), lockMs: PROBE_WAIT_MS })
  } catch (error) {
    return isLockTimeout(error) ? LOCKED : failureOf(error)
  }
}

const ofAll = (name: LedgerFunction): PoolUser => ({ owner: `function ${name}`, reads: false })

/** A call for one operation. */
async function callFor(
  deps: PostgresLedgerDeps,
  name: LedgerFunction,
  item: LedgerItem,
  terms: CallTerms,
): Promise<LedgerEnd> {
  const [end = missing()] = await call(deps, name, [item], terms)
  return end
}

interface CallTerms {
  readonly user: PoolUser
  /** How long it waits for a row, ms. */
  readonly lockMs: number
}

/** One call of a function for all items. */
async function call(
  { onConnection }: PostgresLedgerDeps,
  name: LedgerFunction,
  items: readonly LedgerItem[],
  { user, lockMs }: CallTerms,
): Promise<readonly LedgerEnd[]> {
  const { rounds, order } = roundsOf(items)
  const statement = { sql: FUNCTIONS[name].sql, params: [rounds, lockMs] }
  for (let connection = 1; ; connection++) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- a further try
      const rows = await onConnection(user, ({ sql }) => callFunction(sql, statement))
      const answers: LedgerEnd[] = items.map(() => missing())
      for (const [position, index] of order.entries()) {
        const answer = rows[position]?.['answer']
        if (answer === null || typeof answer === 'string') answers[index] = { ok: true, answer }
      }
      return answers
    } catch (error) {
      if (connection === MAX_CONNECTIONS || !isConnectionLost(error)) throw error
    }
  }
}

/** Whether the connection was lost while the server may have been well; not where it took too long. */
function isConnectionLost(error: unknown): boolean {
  const isLate = error instanceof StorageUnavailable || isLockTimeout(error)
  return !isLate && classifyPostgresError(error) === 'unavailable'
}

function failureOf(error: unknown): LedgerEnd {
  const unavailable = classifyPostgresError(error) !== 'refused'
  return { ok: false, unavailable, message: messageOf(causeOf(error)) }
}

function missing(): LedgerEnd {
  return { ok: false, unavailable: true, message: 'internal error: an operation got no answer' }
}

function callOf(name: string): string {
  return `SELECT answer FROM ${name}(CAST(? AS TEXT)::jsonb, CAST(? AS INTEGER)) AS answer`
}
