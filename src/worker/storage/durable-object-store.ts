import type { SqlValue } from './database.ts'
import type { SyncStore } from './sync-store.ts'

/**
 * The SQLite database of a Durable Object. Statements that run without an `await` between them are never interleaved with
 * other work.
 *
 * The runtime commits a `transactionSync` right after the JavaScript that ran it, and sends nothing out of the object before
 * that (the output gate). If the commit fails, the gate breaks: every answer that waits behind it becomes an error, the
 * object can no longer write, and the next call to it creates a new instance.
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
