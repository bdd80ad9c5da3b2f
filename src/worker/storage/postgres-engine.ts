import { messageOf, storageError, type BatchRows } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { createConnectionPool } from './connection-pool.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { isRead } from './sql.ts'
import { NotCommitted, runPostgresBatch } from './postgres-batch.ts'
import { openPostgresConnection, type PostgresAddress } from './postgres-connection.ts'

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
    survives: (error) => classifyPostgresError(error) !== 'unavailable',
  })
  let migration: Promise<void> | undefined

  async function run(customerId: string | null, statements: readonly Statement[]) {
    const user = { owner: customerId ?? '', reads: statements.every(isRead) }
    for (let connection = 1; ; connection++) {
      try {
        return await connections.use(user, ({ sql }) =>
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

/** What an error of PostgreSQL means for the batch (SQLSTATE: PostgreSQL manual, appendix A). */
export type PostgresFailure = 'retry' | 'refused' | 'unavailable'

/** Another transaction came first: nothing was written, and the same batch may succeed next time. */
const RETRY = new Set(['40001', '40P01'])

/** Classes of errors in the statement: unsupported feature, data, constraint, syntax and names. */
const REFUSED_CLASSES = new Set(['0A', '21', '22', '23', '42'])

/** Exceptions within those classes: permissions that the operator has not granted yet. */
const CONFIGURATION_STATES = new Set(['42501'])

/** Classifies an error by its SQLSTATE; one without (a lost connection, a timeout) is `unavailable`. */
export function classifyPostgresError(error: unknown): PostgresFailure {
  const state = sqlState(error)
  if (RETRY.has(state)) return 'retry'
  if (CONFIGURATION_STATES.has(state)) return 'unavailable'
  return state.length === 5 && REFUSED_CLASSES.has(state.slice(0, 2)) ? 'refused' : 'unavailable'
}

/** The driver's error that caused ours. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

function sqlState(error: unknown): string {
  const cause = causeOf(error)
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? code : ''
}
