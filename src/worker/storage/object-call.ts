import type { DurableObjectId } from '@cloudflare/workers-types'
import { storageError } from './batch-outcome.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** The part of a Durable Object namespace that the engines need. */
export interface ObjectNamespace<Target> {
  idFromName(name: string): DurableObjectId
  get(id: DurableObjectId): Target
}

/**
 * Calls an object by name. Gets a new stub each time, because the stub of an object that has failed stays broken.
 * @throws StorageUnavailable when the call itself fails
 */
export async function callObject<Target, Answer>(
  namespace: ObjectNamespace<Target>,
  name: string,
  call: (target: Target) => PromiseLike<Answer>,
): Promise<Answer> {
  try {
    return await call(namespace.get(namespace.idFromName(name)))
  } catch (error) {
    throw storageError(`the storage object failed: ${messageOfThrown(error)}`, false, error)
  }
}
