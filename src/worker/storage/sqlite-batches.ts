import { failedOutcome, messageOf, rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, Row, Statement } from './database.ts'
import { isRead } from './sql.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'

type Batch = readonly Statement[]

/** The outcome of one batch, and whether it changed rows. */
export interface SqliteAnswer {
  readonly outcome: BatchOutcome
  readonly wrote: boolean
}

/** What one statement did. */
export interface SqliteResult {
  readonly rows: readonly Row[]
  readonly wrote: boolean
}

/** A SQLite database that this program alone writes. Its errors name SQLite's code, such as `SQLITE_FULL`. */
export interface SqliteEngine {
  execute(statement: Statement): SqliteResult
  /** Runs work that reads only; all of it sees the same state. */
  snapshot<Result>(work: () => Result): Result
  /** Commits what the work does, or undoes it when it throws. It is on the disk when the promise resolves. */
  transaction<Result>(work: () => Result): Promise<Result>
}

/** An engine as a storage, for work beside the database itself. */
export function sqliteDatabase(engine: SqliteEngine): Database {
  return {
    batch: async (statements) => {
      const [answer] = await runBatches(engine, [statements])
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
  engine: SqliteEngine,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  try {
    const run = () => batches.map((batch) => runBatch(engine, batch))
    // Reads need no transaction that is committed: in one they would wait for every transaction ahead of them, and
    // those behind would wait for them.
    if (batches.every((batch) => batch.every(isRead))) return engine.snapshot(run)
    return await engine.transaction(run)
  } catch (error) {
    const message = messageOf(error)
    const refused = isSqliteRefusal(message)
    if (refused && batches.length > 1) return runApart(engine, batches)
    const answer = { outcome: failedOutcome(message, refused), wrote: false }
    return batches.map(() => answer)
  }
}

async function runApart(
  engine: SqliteEngine,
  batches: readonly Batch[],
): Promise<readonly SqliteAnswer[]> {
  const answers: SqliteAnswer[] = []
  for (const batch of batches) answers.push(...(await runBatches(engine, [batch])))
  return answers
}

function runBatch(engine: SqliteEngine, batch: Batch): SqliteAnswer {
  const results = batch.map((statement) => engine.execute(statement))
  return {
    outcome: { ok: true, rows: results.map(({ rows }) => rows) },
    wrote: results.some(({ wrote }) => wrote),
  }
}
