import type { SqlValue } from './database.ts'
import type { SyncStore } from './sync-store.ts'

/** The SQLite database of a Durable Object. Nothing else runs between two of its statements that are not awaited. */
export function durableObjectStore(storage: DurableObjectStorage): SyncStore {
  return {
    run: (sql, params) => {
      const cursor = storage.sql.exec<Record<string, SqlValue>>(sql, ...params)
      const rows = cursor.toArray()
      return { rows, wrote: cursor.rowsWritten > 0 }
    },
    snapshot: (work) => work(),
    transact: (work) => storage.transaction(async () => work()),
  }
}
