import type { ObjectNamespace } from '../storage/object-call.ts'
import type { ChunkHost, ChunkPipes, ChunkStub, ChunkSwitch } from './chunk-switch.ts'
import type { Seat } from './seat.ts'

export interface ChunkSeatsEnv {
  /**
   * Namespace of the class that `makeChunkObject` returns, where the runtime keeps its object and all requests in one isolate; absent: the
   * chunks of each stream come in the answer to its call.
   */
  readonly CHUNKS?: ObjectNamespace<ChunkStub>
  /** The worker's own `pipes`, with that. */
  readonly PIPES?: ChunkPipes
}

export interface ChunkSeatsHost extends ChunkHost {
  readonly chunkSwitch?: ChunkSwitch | undefined
}

/** The seats for streams of an isolate whose chunks the daemon writes. */
export interface ChunkSeats {
  /** Has a connection for them opened by the current request, unless there is one. */
  readonly prepare: () => void
  /** A seat for a stream of the current request; undefined where its chunks are to come in the answer to its call. */
  readonly seat: () => Seat | undefined
}

/** The name of the object. */
export const CHUNK_OBJECT = 'chunks'

export function openChunkSeats(
  { CHUNKS, PIPES }: ChunkSeatsEnv,
  { chunkSwitch, ...host }: ChunkSeatsHost,
): ChunkSeats {
  if (CHUNKS === undefined || PIPES === undefined || chunkSwitch === undefined) {
    return { prepare: () => {}, seat: () => undefined }
  }
  const object = CHUNKS.idFromName(CHUNK_OBJECT)
  // Made anew each time, because a stub whose object has failed stays broken.
  const stub = () => CHUNKS.get(object)
  return {
    prepare: () => chunkSwitch.prepare(stub, host),
    seat: () => chunkSwitch.seat(PIPES),
  }
}
