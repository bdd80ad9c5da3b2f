import type { ObjectNamespace } from '../storage/object-call.ts'
import { CHUNK_OBJECT } from './chunk-streams.ts'
import type { ChunkStub } from './chunk-switch.ts'

/** Appended to a stream's name, because the platform requires a port. */
const ANY_PORT = 1

/**
 * Opens the client's end of a pipe in a request of its own, which is over once the object has the other end. So nothing
 * refers to this end but the runtime's transfer to the client, and the object notices when the client disconnects. If the
 * streaming request opened the pipe itself, it would hold this end until garbage collection; and if a request ended before
 * the pipe was open, the runtime would keep a socket that is never collected.
 * @param url its path is the stream's name
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
