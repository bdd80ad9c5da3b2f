import { messageOf, storageError, type BatchRows } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { createConnectionPool } from './connection-pool.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { NotCommitted, runPostgresBatch } from './postgres-batch.ts'
import { causeOf, classifyPostgresError } from './postgres-failure.ts'
import { openPostgresConnection } from './postgres-connection.ts'

const CONNECTIONS = 8
/** A customer's batches queue for its lock: more connections would not make them faster. */
const MAX_OF_ONE_CUSTOMER = 3
/** A batch that wrote nothing yet is tried on so many connections: idle ones may have been cut unseen. */
const MAX_CONNECTIONS = 3
const MAX_TRIES = 10
const FIRST_RETRY_MS = 5
const MAX_RETRY_MS = 200

export interface PostgresEngine {
  /** Runs a batch of one customer, or with null of the directory. */
  batch(customerId: string | null, statements: readonly Statement[]): Promise<BatchRows>
  readonly directory: Database
}

/**
 * A PostgreSQL database behind a small pool of connections. The schema is applied before the first batch; a
 * failure to do so fails that batch only, and the next one tries again.
 *
 * @param deadlineMs how long a batch may wait for a connection and run
 * @param random numbers in [0, 1), for the pauses between tries
 */
export function createPostgresEngine(
  databaseUrl: string,
  deadlineMs: number,
  random: () => number,
): PostgresEngine {
  const connections = createConnectionPool({
    open: () => openPostgresConnection(databaseUrl),
    size: CONNECTIONS,
    share: MAX_OF_ONE_CUSTOMER,
    deadlineMs,
    survives: (error) => classifyPostgresError(error) !== 'unavailable',
  })
  let migration: Promise<void> | undefined

  async function run(customerId: string | null, statements: readonly Statement[]) {
    for (let connection = 1; ; connection++) {
      try {
        return await connections.use(customerId ?? '', ({ sql }) =>
          withRetries(() => runPostgresBatch(sql, customerId, statements), random),
        )
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
    migration ??= migrate(bare, MIGRATIONS).catch((error: unknown) => {
      migration = undefined
      throw error
    })
    return migration
  }

  async function batch(customerId: string | null, statements: readonly Statement[]) {
    await migrated()
    return run(customerId, statements)
  }

  return { batch, directory: { batch: (statements) => batch(null, statements) } }
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
