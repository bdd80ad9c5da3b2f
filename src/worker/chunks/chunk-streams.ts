import type { ObjectNamespace } from '../storage/object-call.ts'
import type { ChunkHost, ChunkPipes, ChunkStub, ChunkSwitch } from './chunk-switch.ts'
import type { ChunkStream } from './chunk-stream.ts'

export interface ChunkStreamsEnv {
  /**
   * Namespace of the class that `makeChunkObject` returns, where the runtime keeps its object and all requests in one
   * isolate. Absent: the chunks of each stream come in the answer to its call.
   */
  readonly CHUNKS?: ObjectNamespace<ChunkStub>
  /** The worker's own `pipes` entry point; set together with `CHUNKS`. */
  readonly PIPES?: ChunkPipes
}

export interface ChunkStreamsHost extends ChunkHost {
  readonly chunkSwitch?: ChunkSwitch | undefined
}

/** Opens the streams of an isolate whose chunks the daemon sends separately. */
export interface ChunkStreams {
  /** Makes the current request open the connection for chunks, unless there is one. */
  readonly prepare: () => void
  /** Opens a stream for the current request; undefined where the chunks are to come in the answer to its call. */
  readonly open: () => ChunkStream | undefined
}

/** The name of the object. */
export const CHUNK_OBJECT = 'chunks'

export function openChunkStreams(
  { CHUNKS, PIPES }: ChunkStreamsEnv,
  { chunkSwitch, ...host }: ChunkStreamsHost,
): ChunkStreams {
  if (CHUNKS === undefined || PIPES === undefined || chunkSwitch === undefined) {
    return { prepare: () => {}, open: () => undefined }
  }
  const object = CHUNKS.idFromName(CHUNK_OBJECT)
  // A new stub each time, because the stub of an object that has failed stays broken.
  const stub = () => CHUNKS.get(object)
  return {
    prepare: () => chunkSwitch.prepare(stub, host),
    open: () => chunkSwitch.openStream(PIPES),
  }
}
