import { rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, Statement, Storage } from './database.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'

/** The calls that a `PostgresPool` answers. */
export interface PoolTarget {
  /** `customerId` names the customer of the batch; null: the directory. */
  batch(customerId: string | null, statements: readonly Statement[]): PromiseLike<BatchOutcome>
}

/** One database for all customers and all instances, reached through the pool object of this process. */
export function postgresStorage(namespace: ObjectNamespace<PoolTarget>): Storage {
  const database = (customerId: string | null): Database => ({
    batch: async (statements) =>
      rowsOf(await callObject(namespace, 'pool', (target) => target.batch(customerId, statements))),
  })
  const directory = database(null)
  return { customer: database, directory: () => directory }
}
