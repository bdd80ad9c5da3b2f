import type { DurableObjectId } from '@cloudflare/workers-types'
import {
  messageOf,
  rowsOf,
  storageError,
  type BatchOutcome,
  type BatchRows,
} from './batch-outcome.ts'

/** What the engines need of a Durable Object namespace. */
export interface ObjectNamespace<Target> {
  idFromName(name: string): DurableObjectId
  get(id: DurableObjectId): Target
}

/**
 * Calls an object by name and reads its outcome. The stub is made anew each time: one that has seen its object
 * break stays broken. Whatever the call itself throws means that the object cannot be relied on.
 */
export async function callObject<Target>(
  namespace: ObjectNamespace<Target>,
  name: string,
  call: (target: Target) => PromiseLike<BatchOutcome>,
): Promise<BatchRows> {
  let outcome: BatchOutcome
  try {
    outcome = await call(namespace.get(namespace.idFromName(name)))
  } catch (error) {
    throw storageError(`the storage object failed: ${messageOf(error)}`, false, error)
  }
  return rowsOf(outcome)
}
