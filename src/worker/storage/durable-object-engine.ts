import type { SqlValue } from './database.ts'
import type { SqliteEngine } from './sqlite-batches.ts'

/** The SQLite database of a Durable Object. Nothing else runs between two of its statements that are not awaited. */
export function durableObjectEngine(storage: DurableObjectStorage): SqliteEngine {
  return {
    execute({ sql, params }) {
      const cursor = storage.sql.exec<Record<string, SqlValue>>(sql, ...params)
      const rows = cursor.toArray()
      return { rows, wrote: cursor.rowsWritten > 0 }
    },
    snapshot: (work) => work(),
    transaction: (work) => storage.transaction(async () => work()),
  }
}
