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
import { classifyPostgresError, describePostgresError, isLockTimeout } from './postgres-errors.ts'

export interface PostgresLedger {
  /**
   * Carries out operations together; the answers are in their order. No operation waits long for the row of another
   * customer: one whose row is locked is answered `locked` and not carried out. Never rejects.
   */
  together(name: LedgerFunction, items: readonly LedgerItem[]): Promise<readonly LedgerAnswer[]>
  /**
   * Carries out one operation that was answered `locked`: it waits, for as long as an operation may take, for the row or for
   * another operation of its customer that waits for the row. Never rejects.
   */
  alone(name: LedgerFunction, item: LedgerItem): Promise<LedgerEnd>
}

export interface PostgresLedgerDeps extends DeadlineRules {
  readonly onConnection: OnConnection
  /** Shared with batches, which lock the same rows. */
  readonly rows: RowWaits
  /** After this time without a statement the server ends a call of several round trips, ms. */
  readonly idleMs: number
}

const FUNCTIONS: Readonly<
  Record<LedgerFunction, { readonly sql: string; readonly maxRuns: number }>
> = {
  admit: { sql: callOf('cmr_admit_v2'), maxRuns: 2 },
  settle: { sql: callOf('cmr_settle_v3'), maxRuns: 2 },
  release: { sql: callOf('cmr_release_v2'), maxRuns: 1 },
}

/** How long a call for several customers waits for one row, ms. */
const LOCK_WAIT_MS = 250

/** How long each part of a divided call waits for a row, ms; an operation whose row is still locked then waits alone. */
const PROBE_WAIT_MS = 1

const LOCKED: LedgerAnswer = { locked: true }

const TOO_SLOW: LedgerEnd = { ok: false, unavailable: true, message: 'the database is too slow' }

/** Maximum size of one call, which delays others by tens of milliseconds. */
const MAX_ITEMS = 128
const MAX_CHARACTERS = 4 * 1024 * 1024

/** Maximum number of connections on which a call is tried: idle ones may have been lost unnoticed. */
const MAX_CONNECTIONS = 3

/**
 * The ledger's operations as calls of the database's functions: one round trip and one commit for all operations that wait.
 *
 * If a call is refused, or the row of one customer stays locked, the two halves of the call are tried one after the other,
 * and recursively their halves, so that no operation fails or waits because of another. An operation whose row is locked
 * then waits alone (`RowWaits`); the customer's operations join the shared calls again once the row was available. Every
 * operation is idempotent, so it is retried when its connection is lost.
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

/** Carries out operations in one call, or in several where the call is refused or a row stays locked. Never rejects. */
async function callTogether(
  deps: PostgresLedgerDeps,
  deadline: OperationDeadline,
  { name, items }: LedgerCall,
  lockMs = LOCK_WAIT_MS,
): Promise<readonly LedgerAnswer[]> {
  try {
    // Not counted as connections of a customer, because those may all be waiting for the row.
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
      // One after the other: run at once, two operations of one customer would block each other.
      answers.push(...(await callTogether(deps, deadline, { name, items: half }, PROBE_WAIT_MS)))
    }
    return answers
  }
}

interface CallTerms {
  readonly user: PoolUser
  /** Maximum wait for a locked row, ms; absent: until the deadline of the call. */
  readonly lockMs?: number
  /** The deadline for all tries together. */
  readonly deadline: OperationDeadline
}

/** Calls a function once for all items. */
async function call(
  { onConnection, idleMs }: PostgresLedgerDeps,
  name: LedgerFunction,
  items: readonly LedgerItem[],
  { user, lockMs = Number.POSITIVE_INFINITY, deadline }: CallTerms,
): Promise<readonly LedgerEnd[]> {
  const { rounds, order } = roundsOf(items)
  // A function, because the lock timeout is computed after the wait for a connection.
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

/** Whether the connection was lost, although the server may be well; false where the server took too long. */
function isConnectionLost(error: unknown): boolean {
  const isLate = error instanceof StorageUnavailable || isLockTimeout(error)
  return !isLate && classifyPostgresError(error) === 'unavailable'
}

function failureOf(error: unknown): LedgerEnd {
  const unavailable = classifyPostgresError(error) !== 'refused'
  return { ok: false, unavailable, message: describePostgresError(error) }
}

function missing(): LedgerEnd {
  return { ok: false, unavailable: true, message: 'internal error: an operation got no answer' }
}

function callOf(name: string): string {
  return `SELECT answer FROM ${name}(CAST(? AS TEXT)::jsonb, CAST(? AS INTEGER)) AS answer`
}
