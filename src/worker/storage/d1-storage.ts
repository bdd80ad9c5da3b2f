import type { D1Database } from '@cloudflare/workers-types'
import { storageError, type BatchRows } from './batch-outcome.ts'
import type { Database, Row, Statement, Storage } from './database.ts'
import { migrate } from './migrate.ts'
import { SQLITE_MIGRATIONS } from './migrations.ts'
import { ReadGate } from './read-gate.ts'
import { isRead } from './sql.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/**
 * One D1 database for all customers; every key and every WHERE of the schema names the customer. D1 runs one batch after
 * another, so only a few reads are sent at a time: admissions and settlements then wait behind no more than these.
 * @param now ms since the epoch
 */
export function d1Storage(binding: D1Database, now: () => number): Storage {
  const reads = new ReadGate(now)
  const engine: Database = {
    batch: (statements) => {
      const run = () => runBatch(binding, statements)
      return statements.every(isRead) ? reads.during(run) : run()
    },
  }
  // A flag and not a shared promise: in workerd a request must not wait for work that another one began.
  let migrated = false
  const database: Database = {
    async batch(statements) {
      if (!migrated) {
        await migrate(engine, SQLITE_MIGRATIONS)
        migrated = true
      }
      return engine.batch(statements)
    },
  }
  return { customer: () => database, directory: () => database }
}

async function runBatch(binding: D1Database, statements: readonly Statement[]): Promise<BatchRows> {
  if (statements.length === 0) return []
  try {
    const prepared = statements.map(({ sql, params }) => binding.prepare(sql).bind(...params))
    const results = await binding.batch<Row>(prepared)
    return results.map((result) => result.results)
  } catch (error) {
    const message = messageOfThrown(error)
    throw storageError(message, isSqliteRefusal(message), error)
  }
}
