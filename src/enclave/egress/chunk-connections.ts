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

/** The part of a WebSocket that a chunk connection uses. */
export type ChunkSocket = Pick<WebSocket, 'bufferedAmount' | 'on' | 'send' | 'terminate'>

/**
 * Most unsent bytes in a worker's socket. A worker that asks for streams but does not read is disconnected beyond this.
 * The limit is needed because a stream whose end was sent is no longer counted anywhere else; an open stream holds at
 * most one window.
 */
export const MAX_UNREAD_BYTES = 4_096 * CHUNK_WINDOW_BYTES

/**
 * Unsent bytes from which on a record is sent only if it is no longer than a window. Otherwise some hundreds of streams
 * with long records that end at the same time would exceed `MAX_UNREAD_BYTES`.
 */
const UNSENT_FOR_LONG_RECORDS = MAX_UNREAD_BYTES / 2

/**
 * How many stream numbers are remembered that a worker cut before the stream began. A few suffice: a call that is in
 * flight at that time begins its stream soon.
 */
const MAX_CUT_EARLY = 1_024

/** The connections over which workers get the chunks of their streams. */
export class ChunkConnections {
  readonly #open = new Map<string, ChunkConnection>()

  /** Serves a connection under the id that its worker has chosen; closes an earlier connection with the same id. */
  accept(id: string, socket: ChunkSocket): void {
    this.#open.get(id)?.close()
    const connection = new ChunkConnection(socket, () => {
      if (this.#open.get(id) === connection) this.#open.delete(id)
    })
    this.#open.set(id, connection)
  }

  /**
   * Opens the sender for the chunks of a new stream.
   * @returns undefined when there is no such connection, the stream number is in use, or the worker has already cut the
   *   stream
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
  /**
   * Numbers of streams that the worker cut before they began, the oldest first. Such a stream must not begin: while its
   * provider is silent, nothing would ever end it.
   */
  readonly #cutEarly = new Set<number>()
  #messages: LinkMessage[] = []
  /** Bytes in the bodies of `#messages`. */
  #gatheredBytes = 0

  constructor(socket: ChunkSocket, ended: () => void) {
    this.#socket = socket
    // Errors need no handling here: `close` follows each of them.
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

  /** The worker may report on a stream that has ended in the meantime, or cut one that never began. */
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
    const unsent = this.#socket.bufferedAmount + this.#gatheredBytes
    return unsent < UNSENT_FOR_LONG_RECORDS ? MAX_MESSAGE_BODY_BYTES : CHUNK_WINDOW_BYTES
  }

  /** Collects the messages of all streams in one turn of the event loop and sends them together. */
  #push(message: LinkMessage): void {
    this.#gatheredBytes += message.body.length
    if (this.#messages.push(message) === 1) setImmediate(() => this.#send())
  }

  #send(): void {
    const frames = writeFrames(this.#messages, MAX_CHUNK_FRAME_BYTES)
    this.#messages = []
    this.#gatheredBytes = 0
    for (const frame of frames) this.#socket.send(frame)
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) this.#socket.terminate()
  }

  #end(): void {
    for (const [, chunks] of this.#streams) chunks.drop()
  }
}
