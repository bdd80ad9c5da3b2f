import type { RawData, WebSocket } from 'ws'
import { BriefMap } from '../../protocol/brief-map.ts'
import {
  CHUNK_WINDOW_BYTES,
  MAX_CHUNK_FRAME_BYTES,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  parseTaken,
  readFrame,
  writeFrames,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import type { ChunkAddress } from '../../protocol/stream-record.ts'
import { SentChunks } from './sent-chunks.ts'

const NOTHING = new Uint8Array(0)

/** What this needs of a WebSocket. */
export type ChunkSocket = Pick<WebSocket, 'bufferedAmount' | 'on' | 'send' | 'terminate'>

/**
 * A worker that reads nothing while it orders streams is cut off beyond this, bytes. A stream whose end was sent counts nowhere else; those
 * that are open hold no more than a window each.
 */
export const MAX_UNREAD_BYTES = 4_096 * CHUNK_WINDOW_BYTES

/**
 * Once so much is unread, the record of a stream that ends takes no more than its chunks could. Otherwise some hundreds of streams with
 * long records that end at the same time would exceed `MAX_UNREAD_BYTES`.
 */
const UNREAD_FOR_LONG_RECORDS = MAX_UNREAD_BYTES / 2

/** So many streams that a worker has cut before they began are remembered: a call that is under way at the same time begins soon. */
const MAX_CUT_EARLY = 1_024

/** The connections over which workers get the chunks of their streams. */
export class ChunkConnections {
  readonly #open = new Map<string, ChunkConnection>()

  /** Serves a connection under the id that its worker has chosen; another one of that id is closed. */
  accept(id: string, socket: ChunkSocket): void {
    this.#open.get(id)?.close()
    const connection = new ChunkConnection(socket, () => {
      if (this.#open.get(id) === connection) this.#open.delete(id)
    })
    this.#open.set(id, connection)
  }

  /**
   * Where to write the chunks of a new stream; undefined where there is no such connection, the number is in use, or the worker has cut the stream
   * already.
   */
  open({ connection, stream }: ChunkAddress): SentChunks | undefined {
    return this.#open.get(connection)?.begin(stream)
  }

  close(): void {
    for (const connection of this.#open.values()) connection.close()
  }
}

class ChunkConnection {
  readonly #socket: ChunkSocket
  readonly #streams = new BriefMap<number, SentChunks>()
  /** Numbers of streams that were cut before they began, the oldest first. Once begun, nobody would end such a stream while it is silent. */
  readonly #cutEarly = new Set<number>()
  #messages: LinkMessage[] = []
  /** Of the bodies of `#messages`. */
  #unsentBytes = 0

  constructor(socket: ChunkSocket, ended: () => void) {
    this.#socket = socket
    // What it says is nothing that could be answered: it is closed after that.
    socket.on('error', () => {})
    socket.on('close', () => {
      ended()
      this.#end()
    })
    socket.on('message', (data: RawData, isBinary: boolean) => {
      try {
        if (!isBinary || !(data instanceof Buffer)) throw new TypeError('a frame of text')
        for (const message of readFrame(data)) this.#take(message)
      } catch {
        socket.terminate()
      }
    })
  }

  begin(id: number): SentChunks | undefined {
    if (this.#streams.has(id) || this.#cutEarly.delete(id)) return undefined
    const chunks = new SentChunks(
      (message) => this.#push({ id, head: '', ...message }),
      () => this.#maxRecordBytes,
    )
    this.#streams.add(id, chunks)
    chunks.once('close', () => this.#streams.take(id))
    return chunks
  }

  close(): void {
    this.#socket.terminate()
  }

  /** The worker may say more of a stream that has ended meanwhile, or cut one that was never begun. */
  #take({ kind, id, body }: LinkMessage): void {
    const chunks = this.#streams.get(id)
    if (kind === MESSAGE_KINDS.taken) return chunks?.taken(parseTaken(body))
    if (kind !== MESSAGE_KINDS.cut) throw new Error('a message that only a daemon sends')
    if (chunks !== undefined) return chunks.cut()
    this.#rememberCut(id)
    return this.#push({ kind: MESSAGE_KINDS.end, id, head: '', body: NOTHING })
  }

  #rememberCut(id: number): void {
    this.#cutEarly.add(id)
    if (this.#cutEarly.size <= MAX_CUT_EARLY) return
    const [oldest = id] = this.#cutEarly
    this.#cutEarly.delete(oldest)
  }

  get #maxRecordBytes(): number {
    const unread = this.#socket.bufferedAmount + this.#unsentBytes
    return unread < UNREAD_FOR_LONG_RECORDS ? MAX_MESSAGE_BODY_BYTES : CHUNK_WINDOW_BYTES
  }

  /** Sends together what all streams send in one turn of the event loop. */
  #push(message: LinkMessage): void {
    this.#unsentBytes += message.body.length
    if (this.#messages.push(message) === 1) setImmediate(() => this.#send())
  }

  #send(): void {
    const frames = writeFrames(this.#messages, MAX_CHUNK_FRAME_BYTES)
    this.#messages = []
    this.#unsentBytes = 0
    for (const frame of frames) this.#socket.send(frame)
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) this.#socket.terminate()
  }

  #end(): void {
    for (const [, chunks] of this.#streams) chunks.drop()
  }
}
