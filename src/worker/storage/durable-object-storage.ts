import { createBatcher, type BatchHost } from '../batching/batcher.ts'
import { rowsOf, type BatchOutcome } from './batch-outcome.ts'
import { StorageUnavailable, type Database, type Statement, type Storage } from './database.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'
import { packBatches, type PackedBatches } from './packed-batches.ts'

/** The calls a `StoreObject` answers. */
export interface StoreTarget {
  /** The outcome of each batch, in order. */
  batches(packed: PackedBatches): PromiseLike<readonly BatchOutcome[]>
}

const OBJECT = 'ledger'

/** As many as a transaction may hold up others for, some tens of milliseconds. */
const MAX_BATCHES = 128

/** Far longer than any transaction takes; after it, whether the batch was committed is unknown. */
const PATIENCE_MS = 10_000

/**
 * One object, and so one SQLite file, for everything. Batches of requests that come together reach it in one
 * call and are committed in one transaction: with a file for each customer every request would wait for the
 * disk by itself, twice, on the one thread that serves all of them.
 */
export function durableObjectStorage(
  namespace: ObjectNamespace<StoreTarget>,
  host: BatchHost,
): Storage {
  const ask = createBatcher<readonly Statement[], BatchOutcome>(host, {
    run: (batches) =>
      callObject(namespace, OBJECT, (target) => target.batches(packBatches(batches))),
    maxItems: MAX_BATCHES,
    joinTimeoutMs: PATIENCE_MS,
    timeoutError: () => new StorageUnavailable('the storage object did not answer in time'),
  })
  const database: Database = { batch: async (statements) => rowsOf(await ask(statements)) }
  return { customer: () => database, directory: () => database }
}
