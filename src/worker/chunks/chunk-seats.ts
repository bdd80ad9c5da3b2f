import type { ObjectNamespace } from '../storage/object-call.ts'
import type { ChunkHost, ChunkPipes, ChunkStub, ChunkSwitch } from './chunk-switch.ts'
import type { Seat } from './seat.ts'

export interface ChunkSeatsEnv {
  /**
   * Namespace of the class that `makeChunkObject` returns, where the runtime keeps its object and all requests in one
   * isolate. Absent: the chunks of each stream come in the answer to its call.
   */
  readonly CHUNKS?: ObjectNamespace<ChunkStub>
  /** The worker's own `pipes` entry point; set together with `CHUNKS`. */
  readonly PIPES?: ChunkPipes
}

export interface ChunkSeatsHost extends ChunkHost {
  readonly chunkSwitch?: ChunkSwitch | undefined
}

/** Provides the seats for streams of an isolate whose chunks the daemon writes. */
export interface ChunkSeats {
  /** Makes the current request open the connection for chunks, unless there is one. */
  readonly prepare: () => void
  /** Makes a seat for a stream of the current request; undefined where the chunks are to come in the answer to its call. */
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
  // A new stub each time, because the stub of an object that has failed stays broken.
  const stub = () => CHUNKS.get(object)
  return {
    prepare: () => chunkSwitch.prepare(stub, host),
    seat: () => chunkSwitch.seat(PIPES),
  }
}
