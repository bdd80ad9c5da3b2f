import type { D1Database } from '@cloudflare/workers-types'
import { messageOf, storageError, type BatchRows } from './batch-outcome.ts'
import type { Database, Row, Statement, Storage } from './database.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'

/** One D1 database for all customers; every key and every WHERE of the schema names the customer. */
export function d1Storage(binding: D1Database): Storage {
  const engine: Database = { batch: (statements) => runBatch(binding, statements) }
  // A flag and not a shared promise: in workerd a request must not wait for work that another one began.
  let migrated = false
  const database: Database = {
    async batch(statements) {
      if (!migrated) {
        await migrate(engine, MIGRATIONS)
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
    const message = messageOf(error)
    throw storageError(message, isSqliteRefusal(message), error)
  }
}
