import { ChunkStream } from '../../../src/worker/chunks/chunk-stream.ts'

/** A chunkStream with a pipe of the Web standard, whose object's end is served once it is opened. */
export function pipedChunkStream() {
  const ended: boolean[] = []
  const served: Promise<void>[] = []
  const chunkStream: ChunkStream = new ChunkStream({
    address: { connection: '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1', stream: 3 },
    connect: async () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
      const writer = writable.getWriter()
      writer.closed.catch(() => chunkStream.leave())
      served.push(chunkStream.serve(writer))
      return readable
    },
    tellTaken: () => {},
    ended: (mayCome) => void ended.push(mayCome),
  })
  return { chunkStream, ended, served }
}
