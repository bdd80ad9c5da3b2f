import type { SqlValue } from './database.ts'
import type { SyncStore } from './sync-store.ts'

/**
 * The SQLite database of a Durable Object. Nothing else runs between two of its statements that are not awaited.
 *
 * What `transactionSync` has written, the runtime commits right after the JavaScript that wrote it, and until then it sends nothing
 * that leaves the object (the output gate). When that commit fails, the gate breaks: every answer that waits behind it becomes
 * an error, the object can write no more, and its next call makes a new instance.
 */
export function durableObjectStore(storage: DurableObjectStorage): SyncStore {
  return {
    run: (sql, params) => {
      const cursor = storage.sql.exec<Record<string, SqlValue>>(sql, ...params)
      const rows = cursor.toArray()
      return { rows, wrote: cursor.rowsWritten > 0 }
    },
    snapshot: (work) => work(),
    transact: (work) => storage.transaction(async () => work()),
    transactWithAnswer: (work) => storage.transactionSync(work),
  }
}
