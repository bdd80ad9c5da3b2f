import { createBatcher, type BatchDeps } from '../batching/batcher.ts'
import { rowsOf, type BatchOutcome } from './batch-outcome.ts'
import { StorageUnavailable, type Database, type Statement, type Storage } from './database.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'
import { packBatches, type PackedBatches } from './packed-batches.ts'
import { isRead } from './sql.ts'

/** The calls that a `StoreObject` answers. */
export interface StoreTarget {
  /** The outcome of each batch, in order. */
  batches(packed: PackedBatches): PromiseLike<readonly BatchOutcome[]>
}

const OBJECT = 'ledger'

/** Maximum number of batches in one transaction: it delays others by some tens of milliseconds. */
const MAX_BATCHES = 128

/**
 * Maximum size of one call: calls between objects carry 32 MiB; a receipt has some ten thousand characters, evidence
 * up to millions.
 */
const MAX_BATCH_CHARACTERS = 4 * 1024 * 1024

/** Far longer than any transaction takes; after that it is unknown whether the batch was committed. */
const JOIN_TIMEOUT_MS = 10_000

/**
 * One object, and so one SQLite file, for everything. Batches of requests that arrive together reach it in one call and
 * are committed in one transaction: with a file for each customer, every request would wait for the disk twice, on the
 * one thread that serves all of them (docs/performance.md, "What profiling found"). Without the batcher, a request
 * costs 1.5 to 1.7 times the CPU at 16 and 64 connections ("What each batcher saves").
 *
 * Batches that only read are sent alone: they need no commit, their results may be large, and a slow or failing one
 * must not affect the writes of others.
 */
export function durableObjectStorage(
  namespace: ObjectNamespace<StoreTarget>,
  host: BatchDeps,
): Storage {
  const run = (batches: readonly (readonly Statement[])[]) =>
    callObject(namespace, OBJECT, (target) => target.batches(packBatches(batches)))
  const write = createBatcher<readonly Statement[], BatchOutcome>(host, {
    run,
    maxItems: MAX_BATCHES,
    size: { of: charactersOf, max: MAX_BATCH_CHARACTERS },
    joinTimeoutMs: JOIN_TIMEOUT_MS,
    timeoutError: () => new StorageUnavailable('the storage object did not answer in time'),
  })
  const read = async (statements: readonly Statement[]) => {
    const [outcome] = await run([statements])
    if (outcome === undefined) throw new Error('internal error: a read was left unanswered')
    return outcome
  }
  const database: Database = {
    batch: async (statements) =>
      rowsOf(await (statements.every(isRead) ? read(statements) : write(statements))),
  }
  return { customer: () => database, directory: () => database }
}

/** Characters of the parameters: the statement texts of one call are few and sent once. */
function charactersOf(statements: readonly Statement[]): number {
  let sum = 0
  for (const { params } of statements) {
    for (const value of params) sum += typeof value === 'string' ? value.length : 1
  }
  return sum
}
