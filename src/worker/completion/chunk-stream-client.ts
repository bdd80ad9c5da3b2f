import { concatBytes } from '../../protocol/bytes.ts'
import type { ChunkStream } from '../chunks/chunk-stream.ts'
import { END_OF_EVENT } from '../stream/event-boundary.ts'
import type { PumpedEnd } from './open-stream.ts'

/** The client's end of a stream whose chunks arrive at a `ChunkStream`, from which the runtime moves them. */
export class ChunkStreamClient implements PumpedEnd {
  readonly seesBytes = false
  readonly readable: ReadableStream<Uint8Array>
  readonly #chunkStream: ChunkStream
  /** Whether the chunks were cut, perhaps in the middle of an event. */
  #cutOff = false

  /** @param onDisconnect called when the client has disconnected */
  static async open(
    chunkStream: ChunkStream,
    onDisconnect: () => void,
  ): Promise<ChunkStreamClient> {
    return new ChunkStreamClient(chunkStream, await chunkStream.openForClient(), onDisconnect)
  }

  private constructor(
    chunkStream: ChunkStream,
    readable: ReadableStream<Uint8Array>,
    onDisconnect: () => void,
  ) {
    this.#chunkStream = chunkStream
    this.readable = readable
    void this.#watchEnd(onDisconnect)
  }

  async #watchEnd(onDisconnect: () => void): Promise<void> {
    const end = await this.#chunkStream.over
    this.#cutOff = end === 'cut'
    if (end === 'disconnected') onDisconnect()
  }

  take(): Promise<void> {
    throw new Error('internal error: the runtime moves these chunks')
  }

  async send(events: Uint8Array): Promise<void> {
    if (!(await this.#chunkStream.send(events))) throw new Error('the client has disconnected')
  }

  seal(): Promise<string> {
    throw new Error('internal error: bytes that were not seen have no digest here')
  }

  async finish(last: Uint8Array): Promise<void> {
    // A client that has disconnected by now misses only these bytes; the settlement they report is stored already.
    await this.#chunkStream.send(this.#cutOff ? concatBytes(END_OF_EVENT, last) : last)
    this.#chunkStream.close()
  }

  /** Closes the connection of a client that does not read. */
  abandon(): void {
    this.#chunkStream.leave()
  }
}
