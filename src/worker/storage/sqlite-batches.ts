import { failedOutcome, messageOf, rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, SqlValue, Statement } from './database.ts'
import { createGroup } from './group-commit.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'

/** What became of one batch, and whether it changed rows. */
interface SqliteAnswer {
  readonly outcome: BatchOutcome
  readonly wrote: boolean
}

export interface SqliteBatches {
  /** Runs a batch together with others that arrive at the same time. */
  readonly grouped: (statements: readonly Statement[]) => Promise<SqliteAnswer>
  /** Runs each batch at once, for work inside the object itself. */
  readonly immediate: Database
}

/** Batches on the SQLite database of a Durable Object. */
export function createSqliteBatches(
  storage: DurableObjectStorage,
  defer: (flush: () => void) => void,
): SqliteBatches {
  const runAll = (batches: readonly (readonly Statement[])[]) => runGroup(storage, batches)
  return {
    grouped: createGroup(runAll, defer),
    immediate: {
      batch: async (statements) => rowsOf(runOne(storage, statements).outcome),
    },
  }
}

/**
 * Runs every batch in a savepoint of its own inside one transaction. A failure of the engine (a full disk)
 * may have undone what other batches of the group wrote before it, so it fails and rolls back all of them.
 */
function runGroup(
  storage: DurableObjectStorage,
  batches: readonly (readonly Statement[])[],
): readonly SqliteAnswer[] {
  const [only] = batches
  // Its own savepoint undoes all there is to undo, and every savepoint has SQLite copy the pages it changes.
  if (batches.length === 1 && only) return [runOne(storage, only)]
  try {
    return storage.transactionSync(() =>
      batches.map((statements) => {
        const answer = runOne(storage, statements)
        if (!answer.outcome.ok && answer.outcome.unavailable)
          throw new Error(answer.outcome.message)
        return answer
      }),
    )
  } catch (error) {
    const outcome = failedOutcome(messageOf(error), false)
    return batches.map(() => ({ outcome, wrote: false }))
  }
}

function runOne(storage: DurableObjectStorage, statements: readonly Statement[]): SqliteAnswer {
  try {
    let written = 0
    const rows = storage.transactionSync(() =>
      statements.map(({ sql, params }) => {
        const cursor = storage.sql.exec<Record<string, SqlValue>>(sql, ...params)
        const found = cursor.toArray()
        written += cursor.rowsWritten
        return found
      }),
    )
    return { outcome: { ok: true, rows }, wrote: written > 0 }
  } catch (error) {
    const message = messageOf(error)
    return { outcome: failedOutcome(message, isSqliteRefusal(message)), wrote: false }
  }
}
