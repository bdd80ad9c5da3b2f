import { messageOf } from './batch-outcome.ts'
import type { PoolUser } from './connection-pool.ts'
import { createJoiningLanes } from './joining-lanes.ts'
import {
  roundsOf,
  type LedgerAnswer,
  type LedgerFunction,
  type LedgerItem,
} from './postgres-calls.ts'
import { callFunction } from './postgres-batch.ts'
import type { PostgresConnection } from './postgres-connection.ts'
import { StorageUnavailable } from './database.ts'
import { causeOf, classifyPostgresError, isLockTimeout } from './postgres-errors.ts'

/** Carries out operations; the answers are in their order. It never rejects. */
export type PostgresLedger = (
  name: LedgerFunction,
  items: readonly LedgerItem[],
) => Promise<readonly LedgerAnswer[]>

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

/** A call delays others by some tens of milliseconds at most. */
const MAX_ITEMS = 128
const MAX_CHARACTERS = 4 * 1024 * 1024

/** An idle connection may have been cut unnoticed, so a call is tried on so many. */
const MAX_CONNECTIONS = 3

/**
 * The ledger's operations in calls of the database's functions: one round trip and one commit for all that wait.
 *
 * Where the call is refused, or the row of one customer stays locked, each operation is carried out alone, so that none
 * fails or waits because of another. While one waits alone, later ones of its customer do not join others. Every
 * operation may be repeated, so one whose connection is lost is.
 */
export function createPostgresLedger(deps: PostgresLedgerDeps): PostgresLedger {
  const alone = new Map<string, number>()

  async function runAlone(name: LedgerFunction, item: LedgerItem): Promise<LedgerAnswer> {
    const { customerId } = item
    alone.set(customerId, (alone.get(customerId) ?? 0) + 1)
    try {
      const user = { owner: customerId, reads: false }
      const [answer = missing()] = await call(deps, name, [item], {
        user,
        lockMs: deps.deadlineMs,
      })
      return answer
    } catch (error) {
      return failureOf(error)
    } finally {
      const left = (alone.get(customerId) ?? 0) - 1
      if (left > 0) alone.set(customerId, left)
      else alone.delete(customerId)
    }
  }

  async function runTogether(name: LedgerFunction, items: readonly LedgerItem[]) {
    try {
      const user = { owner: `function ${name}`, reads: false }
      return await call(deps, name, items, { user, lockMs: LOCK_WAIT_MS })
    } catch (error) {
      const separable = isLockTimeout(error) || classifyPostgresError(error) === 'refused'
      if (separable) return Promise.all(items.map((item) => runAlone(name, item)))
      return items.map(() => failureOf(error))
    }
  }

  const laneOf = (name: LedgerFunction) =>
    createJoiningLanes<LedgerItem, LedgerAnswer>({
      run: (items) => runTogether(name, items),
      lanes: FUNCTIONS[name].lanes,
      maxItems: MAX_ITEMS,
      maxSize: MAX_CHARACTERS,
      sizeOf: ({ entry }) => entry.length,
      deadlineMs: deps.deadlineMs,
      late: { ok: false, unavailable: true, message: 'the database is too slow' },
    })
  const lanes = { admit: laneOf('admit'), settle: laneOf('settle'), release: laneOf('release') }

  return async (name, items) => {
    const apart = items.filter(({ customerId }) => alone.has(customerId))
    if (apart.length === 0) return lanes[name](items)
    const others = items.filter(({ customerId }) => !alone.has(customerId))
    const [ofApart, ofOthers] = await Promise.all([
      Promise.all(apart.map((item) => runAlone(name, item))),
      lanes[name](others),
    ])
    const answers = new Map<LedgerItem, LedgerAnswer | undefined>()
    for (const [index, item] of apart.entries()) answers.set(item, ofApart[index])
    for (const [index, item] of others.entries()) answers.set(item, ofOthers[index])
    return items.map((item) => answers.get(item) ?? missing())
  }
}

/** One call of a function for all items. */
async function call(
  { onConnection }: PostgresLedgerDeps,
  name: LedgerFunction,
  items: readonly LedgerItem[],
  { user, lockMs }: { readonly user: PoolUser; readonly lockMs: number },
): Promise<readonly LedgerAnswer[]> {
  const { rounds, order } = roundsOf(items)
  const statement = { sql: FUNCTIONS[name].sql, params: [rounds, lockMs] }
  for (let connection = 1; ; connection++) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- a further try
      const rows = await onConnection(user, ({ sql }) => callFunction(sql, statement))
      const answers: LedgerAnswer[] = items.map(() => missing())
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

function failureOf(error: unknown): LedgerAnswer {
  const unavailable = classifyPostgresError(error) !== 'refused'
  return { ok: false, unavailable, message: messageOf(causeOf(error)) }
}

function missing(): LedgerAnswer {
  return { ok: false, unavailable: true, message: 'internal error: an operation got no answer' }
}

function callOf(name: string): string {
  return `SELECT answer FROM ${name}(CAST(? AS TEXT)::jsonb, CAST(? AS INTEGER)) AS answer`
}
