import type { PoolUser } from './connection-pool.ts'
import { createSharedRuns } from './shared-runs.ts'
import {
  lockMsOf,
  withDeadline,
  type DeadlineRules,
  type OperationDeadline,
} from './operation-deadline.ts'
import {
  roundsOf,
  type LedgerAnswer,
  type LedgerEnd,
  type LedgerFunction,
  type LedgerItem,
} from './postgres-calls.ts'
import { callFunction } from './postgres-batch.ts'
import type { OnConnection } from './postgres-batches.ts'
import { StorageUnavailable } from './database.ts'
import type { RowWaits } from './row-waits.ts'
import { causeOf, classifyPostgresError, isLockTimeout } from './postgres-errors.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

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

export interface PostgresLedgerDeps extends DeadlineRules {
  readonly onConnection: OnConnection
  /** Shared with batches, which lock the same rows. */
  readonly rows: RowWaits
  /** After this time without a word the server gives a call of several round trips up, ms. */
  readonly idleMs: number
}

const FUNCTIONS: Readonly<
  Record<LedgerFunction, { readonly sql: string; readonly maxRuns: number }>
> = {
  admit: { sql: callOf('cmr_admit_v2'), maxRuns: 2 },
  settle: { sql: callOf('cmr_settle_v3'), maxRuns: 2 },
  release: { sql: callOf('cmr_release_v2'), maxRuns: 1 },
}

/** How long a call for several customers waits for the row of one of them, ms. */
const LOCK_WAIT_MS = 250

/** How long each part of such a call then waits, ms: one that gets the row only later waits alone. */
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
 * Where the call is refused, or the row of one customer stays locked, its halves are called one after the other, and their halves,
 * so that no operation fails or waits because of another. One whose row is locked then waits alone (`RowWaits`), and joins all
 * others again once its customer's row can be had. Every operation may be repeated, so one whose connection is lost is.
 */
export function createPostgresLedger(deps: PostgresLedgerDeps): PostgresLedger {
  const { rows } = deps

  const runnerOf = (name: LedgerFunction) =>
    createSharedRuns<LedgerItem, LedgerAnswer>({
      run: (items) =>
        withDeadline(deps, (deadline) => callTogether(deps, deadline, { name, items })),
      maxRuns: FUNCTIONS[name].maxRuns,
      maxItems: MAX_ITEMS,
      maxSize: MAX_CHARACTERS,
      sizeOf: ({ entry }) => entry.length,
      deadlineMs: deps.deadlineMs,
      now: deps.now,
      timeoutAnswer: TOO_SLOW,
    })
  const runners = {
    admit: runnerOf('admit'),
    settle: runnerOf('settle'),
    release: runnerOf('release'),
  }

  const together: PostgresLedger['together'] = async (name, items) => {
    const free = items.filter(({ customerId }) => !rows.has(customerId))
    const answers = await runners[name](free)
    if (free.length === items.length) return answers
    const known = new Map(free.map((item, index) => [item, answers[index]]))
    return items.map((item) => (known.has(item) ? (known.get(item) ?? missing()) : LOCKED))
  }

  async function alone(
    name: LedgerFunction,
    item: LedgerItem,
    deadline: OperationDeadline,
  ): Promise<LedgerEnd> {
    const { customerId } = item
    const user = { owner: customerId, reads: false, waits: true }
    return rows.queue<LedgerEnd>(customerId, deadline, {
      wait: async () => {
        const [end = missing()] = await call(deps, name, [item], { user, deadline }).catch(
          (error: unknown) => [failureOf(error)],
        )
        return end
      },
      tryAgain: async () => {
        const [answer = missing()] = await Promise.race([together(name, [item]), deadline.passed])
        return 'locked' in answer ? undefined : answer
      },
      hadRow: (end) => end.status === 'fulfilled' && (end.value.ok || !end.value.unavailable),
    })
  }

  return {
    together,
    alone: (name, item) =>
      withDeadline(deps, (deadline) => alone(name, item, deadline)).catch(failureOf),
  }
}

interface LedgerCall {
  readonly name: LedgerFunction
  readonly items: readonly LedgerItem[]
}

/** Carries out operations in one call, or in several where one keeps the others from it. Never rejects. */
async function callTogether(
  deps: PostgresLedgerDeps,
  deadline: OperationDeadline,
  { name, items }: LedgerCall,
  lockMs = LOCK_WAIT_MS,
): Promise<readonly LedgerAnswer[]> {
  try {
    // On no connections of a customer, which may all wait for the row.
    const user = { owner: `function ${name}`, reads: false }
    return await call(deps, name, items, { user, lockMs, deadline })
  } catch (error) {
    const isLocked = isLockTimeout(error)
    const separable = isLocked || classifyPostgresError(error) === 'refused'
    if (!separable || items.length === 1) {
      return items.map(() => (isLocked ? LOCKED : failureOf(error)))
    }
    const middle = Math.ceil(items.length / 2)
    const answers: LedgerAnswer[] = []
    for (const half of [items.slice(0, middle), items.slice(middle)]) {
      // One after the other: operations of one customer would keep each other from the row.
      answers.push(...(await callTogether(deps, deadline, { name, items: half }, PROBE_WAIT_MS)))
    }
    return answers
  }
}

interface CallTerms {
  readonly user: PoolUser
  /** How long it waits for a row at most, ms; absent: as long as its time allows. */
  readonly lockMs?: number
  /** Of all its tries. */
  readonly deadline: OperationDeadline
}

/** One call of a function for all items. */
async function call(
  { onConnection, idleMs }: PostgresLedgerDeps,
  name: LedgerFunction,
  items: readonly LedgerItem[],
  { user, lockMs = Number.POSITIVE_INFINITY, deadline }: CallTerms,
): Promise<readonly LedgerEnd[]> {
  const { rounds, order } = roundsOf(items)
  // Made once it has a connection, for which it may have waited.
  const statement = () => ({
    sql: FUNCTIONS[name].sql,
    params: [rounds, Math.min(lockMs, lockMsOf(deadline))],
  })
  for (let connection = 1; ; connection++) {
    try {
      const rows = await onConnection(user, deadline, ({ sql }) =>
        callFunction(sql, statement(), idleMs),
      )
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
  return { ok: false, unavailable, message: messageOfThrown(causeOf(error)) }
}

function missing(): LedgerEnd {
  return { ok: false, unavailable: true, message: 'internal error: an operation got no answer' }
}

function callOf(name: string): string {
  return `SELECT answer FROM ${name}(CAST(? AS TEXT)::jsonb, CAST(? AS INTEGER)) AS answer`
}
