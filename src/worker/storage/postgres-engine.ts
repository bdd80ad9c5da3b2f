import type { BatchRows } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { createConnectionPool, type PoolUser } from './connection-pool.ts'
import { migrate } from './migrate.ts'
import { POSTGRES_MIGRATIONS } from './migrations.ts'
import { withDeadline, type DeadlineRules, type OperationDeadline } from './operation-deadline.ts'
import { createPostgresBatches } from './postgres-batches.ts'
import {
  openPostgresConnection,
  type PostgresAddress,
  type PostgresConnection,
} from './postgres-connection.ts'
import { classifyPostgresError, survives } from './postgres-errors.ts'
import { createPostgresLedger, type PostgresLedger } from './postgres-ledger.ts'
import { RowWaits } from './row-waits.ts'

const CONNECTIONS = 8
/** A customer's batches wait for its lock: more connections would not make them faster. */
const MAX_OF_ONE_CUSTOMER = 3
const MAX_TRIES = 10
const FIRST_RETRY_MS = 5
const MAX_RETRY_MS = 200

export interface PostgresEngine {
  /** Runs a batch of one customer, or of the directory (null). */
  batch(customerId: string | null, statements: readonly Statement[]): Promise<BatchRows>
  readonly directory: Database
  /** Operations on the ledger. */
  readonly ledger: PostgresLedger
}

export interface PostgresRules extends DeadlineRules {
  /** Numbers in [0, 1), for the pauses between tries. */
  readonly random: () => number
  /** After this time without a statement the server ends a writing transaction, ms: its host is lost. */
  readonly idleMs: number
}

/**
 * A PostgreSQL database behind a small pool of connections. The schema is applied before the first batch; if that fails,
 * only that batch fails, and the next one tries again.
 */
export function createPostgresEngine(
  address: PostgresAddress,
  { random, idleMs, ...rules }: PostgresRules,
): PostgresEngine {
  const connections = createConnectionPool({
    open: () => openPostgresConnection(address),
    size: CONNECTIONS,
    share: MAX_OF_ONE_CUSTOMER,
    survives,
    now: rules.now,
  })
  const rows = new RowWaits()
  let migration: Promise<void> | undefined

  function onConnection<Result>(
    user: PoolUser,
    deadline: OperationDeadline,
    work: (connection: PostgresConnection) => Promise<Result>,
  ): Promise<Result> {
    return connections.use(user, deadline, (connection) =>
      withRetries(() => work(connection), random),
    )
  }

  const run = createPostgresBatches({ onConnection, rows, idleMs })

  function migrated(): Promise<void> {
    const bare = {
      batch: (statements: readonly Statement[]) =>
        withDeadline(rules, (deadline) => run({ customerId: null, statements }, deadline)),
    }
    migration ??= migrate(bare, POSTGRES_MIGRATIONS).catch((error: unknown) => {
      migration = undefined
      throw error
    })
    return migration
  }

  function batch(customerId: string | null, statements: readonly Statement[]) {
    return withDeadline(rules, async (deadline) => {
      await Promise.race([migrated(), deadline.passed])
      return run({ customerId, statements }, deadline)
    })
  }

  const ledger = createPostgresLedger({
    onConnection: async (user, deadline, work) => {
      await Promise.race([migrated(), deadline.passed])
      return onConnection(user, deadline, work)
    },
    rows,
    idleMs,
    ...rules,
  })
  return { batch, ledger, directory: { batch: (statements) => batch(null, statements) } }
}

/** Retries a transaction that lost to a concurrent one, with growing random pauses. */
async function withRetries<Result>(
  transaction: () => Promise<Result>,
  random: () => number,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction()
    } catch (error) {
      if (attempt === MAX_TRIES || classifyPostgresError(error) !== 'retry') throw error
      const longest = Math.min(FIRST_RETRY_MS * 2 ** attempt, MAX_RETRY_MS)
      await new Promise((resolve) => setTimeout(resolve, random() * longest))
    }
  }
}
