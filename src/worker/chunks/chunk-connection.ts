import { BriefMap } from '../../protocol/brief-map.ts'
import {
  MESSAGE_KINDS,
  printTaken,
  readFrame,
  writeFrames,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import type { LinkSocket } from '../calls/message-connection.ts'
import { microtasksEnd } from '../batching/microtasks.ts'
import { ChunkStream, type ChunkStreamDeps } from './chunk-stream.ts'

const NOTHING = new Uint8Array(0)

/**
 * The connection over which the daemon sends the chunks of all streams of this isolate. It belongs to the object that opened
 * it, and only that object may use it: requests queue their messages here.
 */
export class ChunkConnection {
  /** A UUID by which the daemon identifies the connection. */
  readonly id: string
  /** The streams whose end the daemon has not reported yet, including those that were cut here. */
  readonly #streams = new BriefMap<number, { readonly chunkStream: ChunkStream }>()
  #lastStream = 0
  #messages: LinkMessage[] = []
  #wake: (() => void) | undefined
  readonly #ended: (streams: number) => void
  #hasEnded = false

  /** @param ended called when the connection has ended, with the number of streams that this cut */
  constructor(id: string, ended: (streams: number) => void) {
    this.id = id
    this.#ended = ended
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** For a request: opens a new stream. */
  openStream(connect: (stream: number) => ChunkStreamDeps['connect']): ChunkStream {
    const stream = this.#nextStream()
    const chunkStream = new ChunkStream({
      address: { connection: this.id, stream },
      connect: connect(stream),
      tellTaken: (bytes) => this.#push(stream, MESSAGE_KINDS.taken, printTaken(bytes)),
      ended: (mayCome) => {
        if (mayCome) this.#push(stream, MESSAGE_KINDS.cut, NOTHING)
      },
    })
    this.#streams.add(stream, { chunkStream })
    return chunkStream
  }

  /** For the object: serves the connection until it ends. Never rejects. */
  async run(socket: LinkSocket): Promise<void> {
    socket.binaryType = 'arraybuffer'
    socket.addEventListener('message', ({ data }) => this.#take(data, socket))
    socket.addEventListener('close', () => this.end())
    socket.addEventListener('error', () => this.end())
    try {
      socket.accept()
      while (!this.#hasEnded) {
        await this.#somethingToSend()
        if (!this.#hasEnded) this.#send(socket)
      }
      socket.close()
    } catch {
      // Whatever the error was, the streams are cut.
    } finally {
      this.end()
    }
  }

  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    let cut = 0
    for (const [stream, { chunkStream }] of this.#streams) {
      this.#streams.take(stream)
      if (chunkStream.lose()) cut += 1
    }
    this.#ended(cut)
    this.#wake?.()
  }

  #nextStream(): number {
    do this.#lastStream = (this.#lastStream + 1) >>> 0
    while (this.#streams.has(this.#lastStream))
    return this.#lastStream
  }

  #take(data: unknown, socket: LinkSocket): void {
    if (this.#hasEnded) return
    try {
      if (!(data instanceof ArrayBuffer)) throw new TypeError('a frame of text')
      for (const message of readFrame(new Uint8Array(data))) this.#takeMessage(message)
    } catch {
      this.end()
      socket.close()
    }
  }

  #takeMessage({ kind, id, body }: LinkMessage): void {
    if (kind === MESSAGE_KINDS.end) return this.#streams.take(id)?.chunkStream.takeEnd(body)
    if (kind !== MESSAGE_KINDS.chunk) throw new TypeError('a message that only a worker sends')
    const chunkStream = this.#streams.get(id)?.chunkStream
    if (chunkStream !== undefined) return chunkStream.take(body)
    // The stream was cut before it began.
    return this.#push(id, MESSAGE_KINDS.cut, NOTHING)
  }

  #push(id: number, kind: LinkMessage['kind'], body: Uint8Array): void {
    if (this.#hasEnded) return
    this.#messages.push({ kind, id, head: '', body })
    this.#wake?.()
  }

  /**
   * Waits until there are messages to send. A separate function, because otherwise TypeScript would assume that the state
   * does not change during the wait.
   */
  async #somethingToSend(): Promise<void> {
    if (this.#messages.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    await microtasksEnd()
  }

  #send(socket: LinkSocket): void {
    const messages = this.#messages
    this.#messages = []
    for (const frame of writeFrames(messages)) socket.send(frame)
  }
}
