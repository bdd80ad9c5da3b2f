import type { OwnSignal } from '../calls/own-signal.ts'
import type { ChunkStream } from '../chunks/chunk-stream.ts'
import type { ChunkSource } from './chunk-source.ts'
import type { ClientEnd } from './open-stream.ts'
import { ChunkStreamClient } from './chunk-stream-client.ts'

const NOTHING = new Uint8Array(0)

const cutOff = () => new Error('the chunks did not all come to the client')

/** Chunks that the daemon sends over the isolate's connection for chunks. */
export class ChunkStreamSource implements ChunkSource {
  readonly #chunkStream: ChunkStream

  /** @param call its abort ends the call, and with it the chunks */
  constructor(chunkStream: ChunkStream, call: OwnSignal) {
    this.#chunkStream = chunkStream
    if (call.aborted) chunkStream.cut()
    else call.onAbort(() => chunkStream.cut())
  }

  record(): Promise<string | undefined> {
    return this.#chunkStream.lastRecord()
  }

  async begin(): Promise<boolean> {
    const hasBegun = await this.#chunkStream.begun
    if (!hasBegun && this.#chunkStream.record === undefined) throw cutOff()
    return hasBegun
  }

  pumped(onDisconnect: () => void): Promise<ChunkStreamClient> {
    return ChunkStreamClient.open(this.#chunkStream, onDisconnect)
  }

  async passTo(client: ClientEnd): Promise<void> {
    if (client.seesBytes) return client.take(NOTHING, await this.#chunkStream.openToRead())
    if ((await this.#chunkStream.over) !== 'taken') throw cutOff()
  }

  /** To be called when the chunks come in another way, or not at all. */
  leave(): void {
    this.#chunkStream.cut()
  }
}
