import type { BatchOutcome } from './batch-outcome.ts'
import type { Database, Statement, Storage } from './database.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'

/** The calls a `StoreObject` answers. */
export interface StoreTarget {
  batch(statements: readonly Statement[]): PromiseLike<BatchOutcome>
}

/** One object, and so one SQLite file, for each customer and one for the directory. */
export function durableObjectStorage(namespace: ObjectNamespace<StoreTarget>): Storage {
  const object = (name: string): Database => ({
    batch: (statements) => callObject(namespace, name, (target) => target.batch(statements)),
  })
  const directory = object('directory')
  return { customer: (id) => object(`customer:${id}`), directory: () => directory }
}
