import { messageOfThrown } from '../../protocol/thrown-message.ts'
import { failedOutcome, rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { isRead } from './sql.ts'
import { isOfStatement, isSqliteRefusal } from './sqlite-refusal.ts'
import type { SyncStore } from './sync-store.ts'

type Batch = readonly Statement[]

/** The outcome of one batch, and whether it changed rows. */
export interface SqliteAnswer {
  readonly outcome: BatchOutcome
  readonly wrote: boolean
}

/** A store as a database, outside of the ledger engine. */
export function sqliteDatabase(store: SyncStore): Database {
  return {
    batch: async (statements) => {
      const [answer] = await runBatches(store, [statements])
      if (answer === undefined) throw new Error('internal error: a batch was left unanswered')
      return rowsOf(answer.outcome)
    },
  }
}

/**
 * Runs batches one after another in one transaction, so that one commit waits for the disk for all of them. Each batch is
 * applied completely or not at all.
 *
 * There are no savepoints, for which SQLite would copy each page before changing it. If a statement is refused, the whole
 * transaction is rolled back, and each batch runs again by itself. A failure of the engine (a full disk) fails all batches.
 */
export async function runBatches(
  store: SyncStore,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  try {
    const run = () => batches.map((batch) => runBatch(store, batch))
    // Reads need no committed transaction: in one, they would wait for every transaction ahead of them and delay those
    // behind.
    if (batches.every((batch) => batch.every(isRead))) return store.snapshot(run)
    return await store.transact(run)
  } catch (error) {
    const message = messageOfThrown(error)
    if (isOfStatement(message) && batches.length > 1) return runApart(store, batches)
    const answer = { outcome: failedOutcome(message, isSqliteRefusal(message)), wrote: false }
    return batches.map(() => answer)
  }
}

async function runApart(
  store: SyncStore,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  const answers: SqliteAnswer[] = []
  for (const batch of batches) answers.push(...(await runBatches(store, [batch])))
  return answers
}

function runBatch(store: SyncStore, batch: Batch): SqliteAnswer {
  const results = batch.map(({ sql, params }) => store.run(sql, params))
  return {
    outcome: { ok: true, rows: results.map(({ rows }) => rows) },
    wrote: results.some(({ wrote }) => wrote),
  }
}
