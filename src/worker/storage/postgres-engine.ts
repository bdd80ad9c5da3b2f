import { messageOf, storageError, type BatchRows } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { createConnectionPool, type PoolUser } from './connection-pool.ts'
import { migrate } from './migrate.ts'
import { POSTGRES_MIGRATIONS } from './migrations.ts'
import { isRead } from './sql.ts'
import { NotCommitted, runPostgresBatch } from './postgres-batch.ts'
import {
  openPostgresConnection,
  type PostgresAddress,
  type PostgresConnection,
} from './postgres-connection.ts'
import { causeOf, classifyPostgresError, survives } from './postgres-errors.ts'
import { createPostgresLedger, type PostgresLedger } from './postgres-ledger.ts'

const CONNECTIONS = 8
/** A customer's batches wait for its lock: more connections would not make them faster. */
const MAX_OF_ONE_CUSTOMER = 3
/** Number of connections that a batch is tried on before it has written: idle ones may have been cut unnoticed. */
const MAX_CONNECTIONS = 3
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

/**
 * A PostgreSQL database behind a small pool of connections. The schema is applied before the first batch; a
 * failure to do so fails that batch only, and the next one tries again.
 *
 * @param deadlineMs how long a batch may wait for a connection and run
 * @param random numbers in [0, 1), for the pauses between tries
 */
export function createPostgresEngine(
  address: PostgresAddress,
  deadlineMs: number,
  random: () => number,
): PostgresEngine {
  const connections = createConnectionPool({
    open: () => openPostgresConnection(address),
    size: CONNECTIONS,
    share: MAX_OF_ONE_CUSTOMER,
    deadlineMs,
    survives,
  })
  let migration: Promise<void> | undefined

  function onConnection<Result>(
    user: PoolUser,
    work: (connection: PostgresConnection) => Promise<Result>,
  ): Promise<Result> {
    return connections.use(user, (connection) => withRetries(() => work(connection), random))
  }

  async function run(customerId: string | null, statements: readonly Statement[]) {
    const user = { owner: customerId ?? '', reads: statements.every(isRead) }
    for (let connection = 1; ; connection++) {
      try {
        return await onConnection(user, ({ sql }) => runPostgresBatch(sql, customerId, statements))
      } catch (error) {
        const failure = classifyPostgresError(error)
        const again = error instanceof NotCommitted && connection < MAX_CONNECTIONS
        if (failure === 'unavailable' && again) continue
        const cause = causeOf(error)
        throw storageError(messageOf(cause), failure === 'refused', cause)
      }
    }
  }

  function migrated(): Promise<void> {
    const bare = { batch: (statements: readonly Statement[]) => run(null, statements) }
    migration ??= migrate(bare, POSTGRES_MIGRATIONS).catch((error: unknown) => {
      migration = undefined
      throw error
    })
    return migration
  }

  async function batch(customerId: string | null, statements: readonly Statement[]) {
    await migrated()
    return run(customerId, statements)
  }

  const ledger = createPostgresLedger({
    onConnection: async (user, work) => {
      await migrated()
      return onConnection(user, work)
    },
    deadlineMs,
  })
  return { batch, ledger, directory: { batch: (statements) => batch(null, statements) } }
}

/** Repeats a transaction that lost to another one, with growing random pauses. */
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
