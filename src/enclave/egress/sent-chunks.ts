import {
  CHUNK_WINDOW_BYTES,
  MAX_CHUNK_BYTES,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { WorkerBody } from './worker-body.ts'

const NOTHING = new Uint8Array(0)

/** Sends a message of one stream. */
export type SendChunk = (message: Pick<LinkMessage, 'kind' | 'body'>) => void

/** The longest record that may be sent now, bytes of JSON. The worker asks for longer ones over HTTP. */
export type MaxRecordBytes = () => number

/**
 * Sends the chunks of one stream over the connection that carries all streams of a worker. The worker reports how many
 * bytes its client has taken; at most one window of bytes is in flight.
 */
export class SentChunks implements WorkerBody {
  readonly #send: SendChunk
  readonly #maxRecordBytes: MaxRecordBytes
  readonly #onDrain: (() => void)[] = []
  readonly #onClose: (() => void)[] = []
  /** Chunks that do not fit into the window yet. */
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #underWay = 0
  #isEnded = false
  /** Set by `close`; sent with the end, after all waiting chunks. */
  #record: StreamRecord | undefined
  #isOver = false
  #isCut = false
  /** Whether nothing more is sent: the worker was sent the end, or must not be. */
  #isSilent = false
  #hasRecord = false

  constructor(send: SendChunk, maxRecordBytes: MaxRecordBytes = () => MAX_MESSAGE_BODY_BYTES) {
    this.#send = send
    this.#maxRecordBytes = maxRecordBytes
  }

  get destroyed(): boolean {
    return this.#isCut
  }

  get writableFinished(): boolean {
    return this.#isOver && !this.#isCut
  }

  /** Whether the worker was sent the record. */
  get hasRecord(): boolean {
    return this.#hasRecord
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isCut || this.#isEnded) return true
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
      this.#waiting.push(bytes.subarray(at, at + MAX_CHUNK_BYTES))
    }
    this.#waitingBytes += bytes.length
    this.#sendWaiting()
    return !this.#isFull
  }

  /** Nothing is written after this; `close` sends the record. */
  end(): void {
    this.#isEnded = true
  }

  on(event: 'drain' | 'error', listener: () => void): void {
    if (event === 'drain') this.#onDrain.push(listener)
  }

  once(event: 'close', listener: () => void): void {
    if (event === 'close') this.#onClose.push(listener)
  }

  /**
   * Sends the worker the record that the stream is settled by: after all chunks, or at once where the worker has cut
   * the stream.
   */
  close(record: StreamRecord): void {
    this.#isEnded = true
    this.#record = record
    if (this.#isCut) this.#sendRecord(record)
    else this.#sendWaiting()
  }

  /**
   * The worker's client has taken this many more bytes.
   * @throws RangeError when that is more than was sent
   */
  taken(bytes: number): void {
    if (bytes > this.#underWay) throw new RangeError('more was taken than was sent')
    const wasFull = this.#isFull
    this.#underWay -= bytes
    this.#sendWaiting()
    if (!wasFull || this.#isFull || this.#isEnded) return
    for (const listener of this.#onDrain) listener()
  }

  /** The worker wants no more chunks. It always gets an end, with the record if there is one. */
  cut(): void {
    if (this.#isOver) return
    this.#dropWaiting()
    if (this.#record !== undefined) this.#sendRecord(this.#record)
    // If the stream was still open, this ends it: its `close` listener calls `close` with the record.
    this.#over()
    if (!this.#isSilent) this.#sendEnd(NOTHING)
  }

  /** Stops without sending anything more: the worker's connection has ended, or the stream is refused. */
  drop(): void {
    if (this.#isOver) return
    this.#isSilent = true
    this.#dropWaiting()
    this.#over()
  }

  #dropWaiting(): void {
    this.#isCut = true
    this.#waiting = []
    this.#waitingBytes = 0
  }

  get #isFull(): boolean {
    return this.#underWay + this.#waitingBytes >= CHUNK_WINDOW_BYTES
  }

  #sendWaiting(): void {
    for (;;) {
      const [body] = this.#waiting
      if (body === undefined || this.#underWay + body.length > CHUNK_WINDOW_BYTES) break
      this.#waiting.shift()
      this.#waitingBytes -= body.length
      this.#underWay += body.length
      this.#send({ kind: MESSAGE_KINDS.chunk, body })
    }
    if (this.#record === undefined || this.#waiting.length > 0 || this.#isOver) return
    this.#sendRecord(this.#record)
    this.#over()
  }

  #sendRecord(record: StreamRecord): void {
    if (this.#isSilent) return
    const body = Buffer.from(JSON.stringify(record))
    // Any number of streams may be cut at once. The record of each must then not take more of the connection than its
    // window did.
    const maxBytes = this.#isCut ? CHUNK_WINDOW_BYTES : this.#maxRecordBytes()
    this.#hasRecord = body.length <= maxBytes
    this.#sendEnd(this.#hasRecord ? body : NOTHING)
  }

  #sendEnd(body: Uint8Array): void {
    this.#isSilent = true
    this.#send({ kind: MESSAGE_KINDS.end, body })
  }

  #over(): void {
    this.#isOver = true
    for (const listener of this.#onClose.splice(0)) listener()
  }
}
