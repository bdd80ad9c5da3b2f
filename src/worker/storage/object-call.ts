import type { DurableObjectId } from '@cloudflare/workers-types'
import { messageOf, storageError } from './batch-outcome.ts'

/** What the engines need of a Durable Object namespace. */
export interface ObjectNamespace<Target> {
  idFromName(name: string): DurableObjectId
  get(id: DurableObjectId): Target
}

/**
 * Calls an object by name. The stub is made anew each time: one that has seen its object break stays broken.
 * Whatever the call itself throws means that the object cannot be relied on.
 * @throws StorageUnavailable when the storage does not answer
 */
export async function callObject<Target, Answer>(
  namespace: ObjectNamespace<Target>,
  name: string,
  call: (target: Target) => PromiseLike<Answer>,
): Promise<Answer> {
  try {
    return await call(namespace.get(namespace.idFromName(name)))
  } catch (error) {
    throw storageError(`the storage object failed: ${messageOf(error)}`, false, error)
  }
}
