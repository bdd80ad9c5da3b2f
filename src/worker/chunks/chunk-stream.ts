import { copyBytes } from '../../protocol/bytes.ts'
import { after, type After } from '../batching/deadline-timer.ts'
import { TAKEN_STEP_BYTES } from '../../protocol/link-messages.ts'
import type { ChunkAddress } from '../../protocol/stream-record.ts'

/** How the chunks of a stream ended. */
export type ChunkStreamEnd =
  /**
   * `taken`: the client has received all chunks. `disconnected`: the client has disconnected. `cut`: the daemon is lost, or no more
   * chunks were wanted.
   */
  'taken' | 'disconnected' | 'cut'

/** The part of a pipe's writer that a stream uses. */
export type PipeWriter = Pick<WritableStreamDefaultWriter<Uint8Array>, 'write' | 'close' | 'abort'>

export interface ChunkStreamDeps {
  /** Where the daemon sends the chunks. */
  readonly address: ChunkAddress
  /** Opens the pipe; the calling request owns its end. */
  readonly connect: () => Promise<ReadableStream<Uint8Array>>
  /** Tells the daemon how many more bytes were taken. */
  readonly tellTaken: (bytes: number) => void
  /** Called once, when no more chunks are awaited, with whether the daemon may still send some. */
  readonly ended: (mayCome: boolean) => void
}

/** What the request asks the object that writes its stream to do. */
type Ask =
  | {
      readonly kind: 'write'
      readonly bytes: Uint8Array
      readonly written: () => void
    }
  | { readonly kind: 'close' | 'abort' }

/** How long the daemon may take to answer a cut, ms. After this time, the record is requested in another way. */
const CUT_ANSWER_MS = 2_000

const decoder = new TextDecoder()

/**
 * One stream between two parties: the object of this isolate that receives the chunks of all streams, and the request that
 * the stream is for, which opens it. The runtime lets neither use what belongs to the other. So the object writes to
 * its end of a pipe, from whose other end the runtime moves the bytes to the client, and each party only resolves promises
 * that the other one awaits.
 */
export class ChunkStream {
  readonly #deps: ChunkStreamDeps
  readonly #begun = Promise.withResolvers<boolean>()
  readonly #over = Promise.withResolvers<ChunkStreamEnd>()
  /** Resolves when the client disconnects, which may also happen after the end of the chunks. */
  readonly #gone = Promise.withResolvers<false>()
  /** Chunks that arrived before the pipe was open. */
  #early: Uint8Array[] = []
  #writer: PipeWriter | undefined
  #untakenBytes = 0
  /** Bytes that were taken but not yet reported to the daemon. */
  #untoldBytes = 0
  #record: string | undefined
  /** The daemon's answer where the stream is cut here. */
  readonly #cutAnswer = Promise.withResolvers<string | undefined>()
  #end: ChunkStreamEnd | undefined
  #isClosed = false
  /** Whether this program reads the pipe, which must then end with the chunks. */
  #isRead = false
  #asks: Ask[] = []
  #wake: (() => void) | undefined

  constructor(deps: ChunkStreamDeps) {
    this.#deps = deps
  }

  get address(): ChunkAddress {
    return this.#deps.address
  }

  /** Resolves with the first chunk; to false where the chunks ended without one. */
  get begun(): Promise<boolean> {
    return this.#begun.promise
  }

  /** Resolves with the end of the chunks. */
  get over(): Promise<ChunkStreamEnd> {
    return this.#over.promise
  }

  /** The `StreamRecord` in JSON that came with the end; empty where it must be requested; undefined where none came. */
  get record(): string | undefined {
    return this.#record
  }

  /**
   * The record of a stream after its end; if the stream was cut here, the daemon's answer to that. Empty where the record
   * must be requested; undefined where no answer comes in time, or before the end.
   */
  async lastRecord(callAfter: After = after): Promise<string | undefined> {
    if (this.#end === undefined || this.#record !== undefined) return this.#record
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const timer = callAfter(CUT_ANSWER_MS, () => resolve(undefined))
    const answer = await Promise.race([this.#cutAnswer.promise, promise])
    timer.stop()
    return answer
  }

  /** The stream for the client to read. It ends once `close` was called. */
  openForClient(): Promise<ReadableStream<Uint8Array>> {
    return this.#deps.connect()
  }

  /** The chunks for this program to read. The stream ends with the chunks, and fails where they were cut. */
  openToRead(): Promise<ReadableStream<Uint8Array>> {
    this.#isRead = true
    if (this.#end !== undefined) this.#endRead(this.#end)
    return this.#deps.connect()
  }

  /** Sends the client more bytes after the chunks; false where the client has disconnected. */
  send(bytes: Uint8Array): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<true>()
    if (bytes.length === 0) resolve(true)
    else this.#ask({ kind: 'write', bytes, written: () => resolve(true) })
    return Promise.race([this.#gone.promise, promise])
  }

  /** Ends the stream after everything that was sent. The request awaits nothing more, and may end. */
  close(): void {
    this.#isClosed = true
    this.#ask({ kind: 'close' })
  }

  /** Stops the stream: no more chunks are wanted. */
  cut(): void {
    this.#finish('cut')
  }

  /** For the object: takes a chunk, which is a view of a frame. Ignores late chunks of a stream that was cut here. */
  take(part: Uint8Array): void {
    if (this.#end !== undefined) return
    if (this.#writer === undefined) this.#early.push(copyBytes(part))
    // Nearly always the chunk is taken at once. One that has to wait is copied, so that it does not keep a frame with the
    // chunks of all other streams in memory.
    else this.#writeChunk(this.#writer, this.#untakenBytes === 0 ? part : copyBytes(part))
    this.#untakenBytes += part.length
    this.#begun.resolve(true)
  }

  /** For the object: all chunks have arrived; or, where the stream was cut here, no more will. */
  takeEnd(record: Uint8Array): void {
    if (this.#end !== undefined) return this.#cutAnswer.resolve(decoder.decode(record))
    this.#record = decoder.decode(record)
    this.#begun.resolve(false)
    this.#finishIfTaken()
  }

  /**
   * For the object: the connection to the daemon has ended. If all chunks have arrived, they are still passed on.
   * @returns whether this cuts the stream
   */
  lose(): boolean {
    this.#cutAnswer.resolve(undefined)
    const isOpen = this.#end === undefined && this.#record === undefined
    if (isOpen) this.#finish('cut')
    return isOpen
  }

  /** The client has disconnected, or is given up because it does not read. */
  leave(): void {
    if (this.#isClosed) return
    this.#finish('disconnected')
    this.#gone.resolve(false)
    this.#ask({ kind: 'abort' })
  }

  /** For the object: writes to its end of the pipe until the pipe is closed. Never rejects. */
  async serve(writer: PipeWriter): Promise<void> {
    this.#writer = writer
    for (const chunk of this.#early.splice(0)) this.#writeChunk(writer, chunk)
    for (;;) {
      const ask = await this.#nextAsk()
      // Not awaited, so that a client that does not read can be given up.
      if (ask.kind === 'write') this.#write(writer, ask.bytes, ask.written)
      else return (ask.kind === 'close' ? writer.close() : writer.abort()).catch(() => {})
    }
  }

  #writeChunk(writer: PipeWriter, chunk: Uint8Array): void {
    const { length } = chunk
    this.#write(writer, chunk, () => this.#taken(length))
  }

  #write(writer: PipeWriter, bytes: Uint8Array, written: () => void): void {
    writer.write(bytes).then(written, () => this.leave())
  }

  #taken(bytes: number): void {
    this.#untakenBytes -= bytes
    this.#untoldBytes += bytes
    if (this.#record !== undefined) return this.#finishIfTaken()
    if (this.#end !== undefined || this.#untoldBytes < TAKEN_STEP_BYTES) return
    this.#deps.tellTaken(this.#untoldBytes)
    this.#untoldBytes = 0
  }

  #finishIfTaken(): void {
    if (this.#untakenBytes === 0) this.#finish('taken')
  }

  #finish(end: ChunkStreamEnd): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#deps.ended(this.#record === undefined)
    this.#begun.resolve(false)
    this.#over.resolve(end)
    if (this.#isRead) this.#endRead(end)
  }

  #endRead(end: ChunkStreamEnd): void {
    this.#ask({ kind: end === 'taken' ? 'close' : 'abort' })
  }

  #ask(ask: Ask): void {
    this.#asks.push(ask)
    this.#wake?.()
  }

  async #nextAsk(): Promise<Ask> {
    for (;;) {
      const ask = this.#asks.shift()
      if (ask !== undefined) return ask
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
  }
}
