import { copyBytes } from '../../protocol/bytes.ts'
import { after, type After } from '../batching/deadline-timer.ts'
import { TAKEN_STEP_BYTES } from '../../protocol/link-messages.ts'
import type { ChunkAddress } from '../../protocol/stream-record.ts'

/** How the chunks of a stream ended. */
export type SeatEnd =
  /** `taken`: the client has all of them. `left`: it is gone. `cut`: the daemon is, or nothing more was wanted. */
  'taken' | 'left' | 'cut'

/** What this needs of the writer of a pipe. */
export type PipeWriter = Pick<WritableStreamDefaultWriter<Uint8Array>, 'write' | 'close' | 'abort'>

export interface SeatDeps {
  /** Where the daemon is to send the chunks. */
  readonly address: ChunkAddress
  /** Opens the pipe from the request that calls it. */
  readonly connect: () => Promise<ReadableStream<Uint8Array>>
  /** Tells the daemon how much more was taken. */
  readonly tellTaken: (bytes: number) => void
  /** Called once, when no more chunks are awaited, with whether the daemon may still send some. */
  readonly ended: (mayCome: boolean) => void
}

/** What the request asks of the object that writes its stream. */
type Ask =
  | {
      readonly kind: 'write'
      readonly bytes: Uint8Array
      readonly written: () => void
    }
  | { readonly kind: 'close' | 'abort' }

/** How long the daemon may take to answer that a stream is cut, ms. Then it is asked in another way. */
const CUT_ANSWER_MS = 2_000

const decoder = new TextDecoder()

/**
 * One stream between the object of this isolate to which the chunks of all streams come, and the request that the stream is for. The
 * runtime lets neither use what belongs to the other. So the object writes to its end of a pipe, from whose other end the runtime moves
 * the bytes to the client, and each of the two only resolves promises that the other one awaits. The request makes the seat.
 */
export class Seat {
  readonly #deps: SeatDeps
  readonly #begun = Promise.withResolvers<boolean>()
  readonly #over = Promise.withResolvers<SeatEnd>()
  /** The client may leave after the chunks have ended, too. */
  readonly #gone = Promise.withResolvers<false>()
  /** Chunks that came before the pipe was there. */
  #early: Uint8Array[] = []
  #writer: PipeWriter | undefined
  #untakenBytes = 0
  /** What was taken and not told yet. */
  #untoldBytes = 0
  #record: string | undefined
  /** What the daemon answers where the stream is cut here. */
  readonly #cutAnswer = Promise.withResolvers<string | undefined>()
  #end: SeatEnd | undefined
  #isClosed = false
  /** Whether the pipe ends with the chunks, since it is read here. */
  #isRead = false
  #asks: Ask[] = []
  #wake: (() => void) | undefined

  constructor(deps: SeatDeps) {
    this.#deps = deps
  }

  get address(): ChunkAddress {
    return this.#deps.address
  }

  /** Waits for the first chunk. False where the chunks ended without one. */
  get begun(): Promise<boolean> {
    return this.#begun.promise
  }

  /** Waits for the end of the chunks. */
  get over(): Promise<SeatEnd> {
    return this.#over.promise
  }

  /** The `StreamRecord` in JSON that came with the end; empty where it is to be asked for. Undefined where none came. */
  get record(): string | undefined {
    return this.#record
  }

  /**
   * The record of a stream of which no more chunks are awaited: where it was cut here, the daemon's answer to that. Empty where it is to be
   * asked for; undefined where no answer comes, and while chunks are awaited.
   */
  async lastRecord(callAfter: After = after): Promise<string | undefined> {
    if (this.#end === undefined || this.#record !== undefined) return this.#record
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const timer = callAfter(CUT_ANSWER_MS, () => resolve(undefined))
    const answer = await Promise.race([this.#cutAnswer.promise, promise])
    timer.stop()
    return answer
  }

  /** The stream as a client reads it. It ends once `close` was called. */
  openForClient(): Promise<ReadableStream<Uint8Array>> {
    return this.#deps.connect()
  }

  /** The chunks to be read here. They end by themselves, and fail where they were cut. */
  openToRead(): Promise<ReadableStream<Uint8Array>> {
    this.#isRead = true
    if (this.#end !== undefined) this.#endRead(this.#end)
    return this.#deps.connect()
  }

  /** Sends a client more than the chunks, after them; false where it is gone. */
  send(bytes: Uint8Array): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<true>()
    if (bytes.length === 0) resolve(true)
    else this.#ask({ kind: 'write', bytes, written: () => resolve(true) })
    return Promise.race([this.#gone.promise, promise])
  }

  /** Ends the stream, after all that was sent. The request awaits nothing any more, and may be over. */
  close(): void {
    this.#isClosed = true
    this.#ask({ kind: 'close' })
  }

  /** No more chunks are wanted. */
  cut(): void {
    this.#finish('cut')
  }

  /** For the object: a chunk, which is a part of a frame. Those of a stream that was cut here were on their way. */
  take(part: Uint8Array): void {
    if (this.#end !== undefined) return
    if (this.#writer === undefined) this.#early.push(copyBytes(part))
    // Nearly always it is taken at once. What waits longer must not keep frames with the chunks of all other streams.
    else this.#writeChunk(this.#writer, this.#untakenBytes === 0 ? part : copyBytes(part))
    this.#untakenBytes += part.length
    this.#begun.resolve(true)
  }

  /** For the object: all chunks have come, or no more do since the stream was cut here. */
  takeEnd(record: Uint8Array): void {
    if (this.#end !== undefined) return this.#cutAnswer.resolve(decoder.decode(record))
    this.#record = decoder.decode(record)
    this.#begun.resolve(false)
    this.#finishIfTaken()
  }

  /**
   * For the object: the connection to the daemon has ended. What has all come is still passed on.
   * @returns whether the stream is cut by that
   */
  lose(): boolean {
    this.#cutAnswer.resolve(undefined)
    const isOpen = this.#end === undefined && this.#record === undefined
    if (isOpen) this.#finish('cut')
    return isOpen
  }

  /** The client is gone, or is given up because it does not read. */
  leave(): void {
    if (this.#isClosed) return
    this.#finish('left')
    this.#gone.resolve(false)
    this.#ask({ kind: 'abort' })
  }

  /** For the object: writes to its end of the pipe until that is closed. Never rejects. */
  async serve(writer: PipeWriter): Promise<void> {
    this.#writer = writer
    for (const chunk of this.#early.splice(0)) this.#writeChunk(writer, chunk)
    for (;;) {
      const ask = await this.#nextAsk()
      // Not awaited, so that a client that does not take it can be given up.
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

  #finish(end: SeatEnd): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#deps.ended(this.#record === undefined)
    this.#begun.resolve(false)
    this.#over.resolve(end)
    if (this.#isRead) this.#endRead(end)
  }

  #endRead(end: SeatEnd): void {
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
