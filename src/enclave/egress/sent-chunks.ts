import {
  CHUNK_WINDOW_BYTES,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import type { StreamRecord } from '../../protocol/stream-record.ts'
import { ChunkWindow } from './chunk-window.ts'
import type { WorkerBody } from './worker-body.ts'

const NOTHING = new Uint8Array(0)

/** Sends a message of one stream. */
export type SendChunk = (message: Pick<LinkMessage, 'kind' | 'body'>) => void

/** The longest record that may be sent now, bytes of JSON. The worker asks for longer ones over HTTP. */
export type MaxRecordBytes = () => number

/**
 * Sends the chunks of one stream over the connection that carries all streams of a worker, followed by the record that the
 * stream is settled by.
 */
export class SentChunks implements WorkerBody {
  readonly #send: SendChunk
  readonly #maxRecordBytes: MaxRecordBytes
  readonly #window = new ChunkWindow()
  readonly #onDrain: (() => void)[] = []
  readonly #onClose: (() => void)[] = []
  /** `finished` once all chunks and the end were sent; `cut` when the rest is not sent. */
  #state: 'open' | 'finished' | 'cut' = 'open'
  /** Whether nothing more is written. */
  #isEnded = false
  /** Set by `close`; sent with the end, after all waiting chunks. */
  #record: StreamRecord | undefined
  /** Whether nothing more is sent: the worker was sent the end, or must not be. */
  #isSilent = false
  #hasRecord = false

  constructor(send: SendChunk, maxRecordBytes: MaxRecordBytes = () => MAX_MESSAGE_BODY_BYTES) {
    this.#send = send
    this.#maxRecordBytes = maxRecordBytes
  }

  get destroyed(): boolean {
    return this.#state === 'cut'
  }

  get writableFinished(): boolean {
    return this.#state === 'finished'
  }

  /** Whether the worker was sent the record. */
  get hasRecord(): boolean {
    return this.#hasRecord
  }

  write(bytes: Uint8Array): boolean {
    if (this.#state === 'cut' || this.#isEnded) return true
    this.#window.add(bytes)
    this.#sendWaiting()
    return !this.#window.isFull
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
    if (this.#state === 'cut') this.#sendRecord(record)
    else this.#sendWaiting()
  }

  /**
   * The worker's client has taken this many more bytes.
   * @throws RangeError when that is more than was sent
   */
  taken(bytes: number): void {
    const wasFull = this.#window.isFull
    this.#window.taken(bytes)
    this.#sendWaiting()
    if (!wasFull || this.#window.isFull || this.#isEnded) return
    for (const listener of this.#onDrain) listener()
  }

  /** The worker wants no more chunks. It always gets an end, with the record if there is one. */
  cut(): void {
    if (this.#state !== 'open') return
    this.#dropWaiting()
    if (this.#record !== undefined) this.#sendRecord(this.#record)
    // If the stream was still open, this ends it: its `close` listener calls `close` with the record.
    this.#tellListeners()
    if (!this.#isSilent) this.#sendEnd(NOTHING)
  }

  /** Stops without sending anything more: the worker's connection has ended, or the stream is refused. */
  drop(): void {
    if (this.#state !== 'open') return
    this.#isSilent = true
    this.#dropWaiting()
    this.#tellListeners()
  }

  #dropWaiting(): void {
    this.#state = 'cut'
    this.#window.clear()
  }

  #sendWaiting(): void {
    for (let body = this.#window.next(); body !== undefined; body = this.#window.next()) {
      this.#send({ kind: MESSAGE_KINDS.chunk, body })
    }
    if (this.#record === undefined || this.#window.hasWaiting || this.#state !== 'open') return
    this.#state = 'finished'
    this.#sendRecord(this.#record)
    this.#tellListeners()
  }

  #sendRecord(record: StreamRecord): void {
    if (this.#isSilent) return
    const body = Buffer.from(JSON.stringify(record))
    // Any number of streams may be cut at once. The record of each must then not take more of the connection than its
    // window did.
    const maxBytes = this.#state === 'cut' ? CHUNK_WINDOW_BYTES : this.#maxRecordBytes()
    this.#hasRecord = body.length <= maxBytes
    this.#sendEnd(this.#hasRecord ? body : NOTHING)
  }

  #sendEnd(body: Uint8Array): void {
    this.#isSilent = true
    this.#send({ kind: MESSAGE_KINDS.end, body })
  }

  #tellListeners(): void {
    for (const listener of this.#onClose.splice(0)) listener()
  }
}
