import type { ObjectNamespace } from '../storage/object-call.ts'
import { CHUNK_OBJECT } from './chunk-seats.ts'
import type { ChunkStub } from './chunk-switch.ts'

/** Beside a stream's name; the platform wants a port. */
const ANY_PORT = 1

/**
 * The end of a pipe for a client, in a request of its own. That is over once the object has the other end, so that nothing holds this one but
 * what moves its bytes to the client: when the client leaves, the object is told. A request that lives on with its stream would hold it
 * until garbage is collected, and one that is over before the pipe is open leaves the runtime a socket that is never collected.
 * @param url the stream's name is its path
 * @throws Error when the object does not take the other end
 */
export async function openPipeEnd(
  url: string,
  chunks: ObjectNamespace<Pick<ChunkStub, 'connect'>> | undefined,
): Promise<ReadableStream<Uint8Array>> {
  if (chunks === undefined) throw new Error('internal error: no object to get the other end')
  const name = new URL(url).pathname.slice(1)
  const stub = chunks.get(chunks.idFromName(CHUNK_OBJECT))
  const { opened, readable } = stub.connect(`${name}:${ANY_PORT}`, { allowHalfOpen: true })
  await opened
  return readable
}
