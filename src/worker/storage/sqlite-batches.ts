import { failedOutcome, messageOf, rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, SqlValue, Statement } from './database.ts'
import { isRead } from './sql.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'

type Batch = readonly Statement[]

/** The outcome of one batch, and whether it changed rows. */
export interface SqliteAnswer {
  readonly outcome: BatchOutcome
  readonly wrote: boolean
}

/** The SQLite database of a Durable Object as a storage, for work inside the object itself. */
export function sqliteDatabase(storage: DurableObjectStorage): Database {
  return {
    batch: async (statements) => {
      const [answer] = await runBatches(storage, [statements])
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
  storage: DurableObjectStorage,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  try {
    const run = () => batches.map((batch) => runBatch(storage, batch))
    // Reads need no transaction: nothing runs between statements that are not awaited. In one they would wait for
    // every transaction ahead of them, and those behind would wait for them.
    if (batches.every((batch) => batch.every(isRead))) return run()
    return await storage.transaction(async () => run())
  } catch (error) {
    const message = messageOf(error)
    const refused = isSqliteRefusal(message)
    if (refused && batches.length > 1) return runApart(storage, batches)
    const answer = { outcome: failedOutcome(message, refused), wrote: false }
    return batches.map(() => answer)
  }
}

async function runApart(
  storage: DurableObjectStorage,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  const answers: SqliteAnswer[] = []
  for (const batch of batches) answers.push(...(await runBatches(storage, [batch])))
  return answers
}

function runBatch(storage: DurableObjectStorage, batch: Batch): SqliteAnswer {
  let written = 0
  const rows = batch.map(({ sql, params }) => {
    const cursor = storage.sql.exec<Record<string, SqlValue>>(sql, ...params)
    const found = cursor.toArray()
    written += cursor.rowsWritten
    return found
  })
  return { outcome: { ok: true, rows }, wrote: written > 0 }
}
