import type { BatchDeps } from '../batching/batcher.ts'
import type { BatchOutcome } from './batch-outcome.ts'
import { batchedStorage } from './batched-storage.ts'
import type { Storage } from './database.ts'
import type { LocalLedger } from './local-ledger.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'
import type { PackedBatches } from './packed-batches.ts'

/** The calls that a `StoreObject` answers. */
export interface StoreTarget {
  /** The outcome of each batch, in order. */
  batches(packed: PackedBatches): PromiseLike<readonly BatchOutcome[]>
  /** The outcome of each operation, in order. */
  operations(calls: readonly LedgerCall[]): PromiseLike<readonly LedgerOutcome[]>
  /**
   * Carries out the operations that a request of the same isolate left under this ticket (`LocalLedger.handOver`), and adds
   * the outcomes to them.
   */
  operationsLeft(ticket: number): PromiseLike<void>
}

const OBJECT = 'ledger'

/**
 * One Durable Object, and so one SQLite file, for all customers. Batches of requests that arrive together reach it in one
 * call and are committed in one transaction. With one file per customer, every request would wait for the disk twice, on the
 * one thread that serves them all (docs/performance-findings.md, "One file, and no savepoints").
 * @param local gives access to the object's ledger where the object runs in this isolate
 */
export function durableObjectStorage(
  namespace: ObjectNamespace<StoreTarget>,
  host: BatchDeps,
  local?: LocalLedger,
): Storage {
  const call = (packed: PackedBatches) =>
    callObject(namespace, OBJECT, (target) => target.batches(packed))
  const operate = (calls: readonly LedgerCall[]) =>
    callObject(namespace, OBJECT, (target) => target.operations(calls))
  const calls = { write: call, read: call }
  if (local === undefined) return batchedStorage({ ...calls, operate }, host)
  const object = namespace.idFromName(OBJECT).toString()
  const atOnce = (operation: LedgerCall) => local.atOnce(object, operation)
  const callLocally = (ticket: number) =>
    callObject(namespace, OBJECT, (target) => target.operationsLeft(ticket))
  const operateLocally = (operations: readonly LedgerCall[]) =>
    local.handOver(operations, callLocally)
  return batchedStorage({ ...calls, operate: operateLocally, atOnce }, host)
}
