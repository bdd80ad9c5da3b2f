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

/** A store as a database, for work beside it. */
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
 * Runs batches one after another and commits them, and waits for the disk, once for all of them. Each is applied
 * completely or not at all.
 *
 * They share one transaction without savepoints, for which SQLite would copy each page before it changes. Only where a
 * statement is refused is everything undone, and each batch run again by itself. A failure of the engine (a full disk)
 * fails all of them.
 */
export async function runBatches(
  store: SyncStore,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  try {
    const run = () => batches.map((batch) => runBatch(store, batch))
    // Reads need no transaction that is committed: in one they would wait for every transaction ahead of them, and
    // those behind would wait for them.
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
