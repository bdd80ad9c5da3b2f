import type { Bytes } from '../../protocol/bytes.ts'
import type { AnswerRecorder } from '../idempotency/answer-recorder.ts'
import { createDigest } from '../stream/digest.ts'
import { EventBoundary, END_OF_EVENT } from '../stream/event-boundary.ts'
import { KEEP_ALIVE } from '../stream/keep-alive.ts'
import { Stopwatch } from '../stream/stopwatch.ts'
import type { ClientEnd } from './open-stream.ts'
import { openPipe } from './pipe.ts'

const clientDisconnected = () => new Error('the client has disconnected or has stopped reading')

/**
 * The client's end of a stream. It sends nothing until it is started; from then on it sends comments whenever it would be
 * silent. They keep proxies from closing the connection, and only they reveal that a client has disconnected: the runtime
 * reports a closed connection at the next write.
 *
 * It does not buffer: `send` resolves when the runtime has taken the bytes, which is one read ahead of the connection.
 */
export class ClientStream implements ClientEnd {
  readonly seesBytes = true
  readonly readable: ReadableStream<Uint8Array>
  readonly #digest = createDigest()
  readonly #keepAliveMs: number
  readonly #sinceSent: Stopwatch
  readonly #sinceWait: Stopwatch
  readonly #onDisconnect: () => void
  readonly #recorder: AnswerRecorder | undefined
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  /** Number of writes that the connection has not taken yet. */
  #waiting = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Whether the bytes relayed so far end with a complete event, so that the router may insert one of its own. */
  readonly #boundary = new EventBoundary()
  #started = false
  #gone = false

  /**
   * @param onDisconnect called when the rest of the answer is useless: the client has disconnected, and no repeat can
   *   receive it
   * @param recorder records the answer for repeats of the request; the answer is then completed even without a connection
   */
  constructor(
    keepAliveMs: number,
    now: () => number,
    onDisconnect: () => void,
    recorder?: AnswerRecorder,
  ) {
    const { readable, writable } = openPipe()
    this.readable = readable
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(() => this.leave())
    this.#keepAliveMs = keepAliveMs
    this.#sinceSent = new Stopwatch(now)
    this.#sinceWait = new Stopwatch(now)
    this.#onDisconnect = onDisconnect
    this.#recorder = recorder
  }

  /** Whether the headers were sent, so that a failure can no longer become a status. */
  get started(): boolean {
    return this.#started
  }

  /** Starts the keep-alive comments. To be called when the headers are sent. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.#sinceSent.restart()
    this.#sendKeepAlives()
  }

  /** Sends complete events; resolves once the client's connection has taken them. */
  send(events: Uint8Array): Promise<void> {
    if (events.length === 0) return Promise.resolve()
    this.#digest.update(events)
    this.#recorder?.add(events)
    return this.#write(events)
  }

  async take(head: Uint8Array, body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader()
    let bytes: Uint8Array | undefined = head
    try {
      while (bytes !== undefined) {
        this.#boundary.pass(bytes)
        await this.send(bytes)
        bytes = (await reader.read()).value
      }
    } catch (error) {
      if (this.#boundary.insideEvent) await this.#endEvent().catch(() => {})
      throw error
    }
  }

  /** Terminates an event that was cut off. */
  #endEvent(): Promise<void> {
    this.#boundary.pass(END_OF_EVENT)
    return this.send(END_OF_EVENT)
  }

  /**
   * Ends the part that a receipt covers. Only `finish` may follow.
   * @returns its SHA-256 in hex
   */
  seal(): Promise<string> {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    return this.#digest.finish()
  }

  /**
   * Sends the last bytes and ends the stream. Failures are ignored: a client that has disconnected by now has
   * received everything but these bytes.
   */
  async finish(last: Uint8Array): Promise<void> {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    try {
      await this.#write(last)
      await this.#writer.close()
    } catch {
      // The connection ended before the last bytes; the settlement they report is stored already.
    }
  }

  /** Closes the connection of a client that has not read for this long. */
  abandonAfter(ms: number): void {
    if (this.#waiting > 0 && this.#sinceWait.elapsed() >= ms) this.leave()
  }

  /** Ends the stream because the client has disconnected. */
  leave(): void {
    if (this.#gone) return
    this.#gone = true
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    // This also ends pending writes.
    void this.#writer.abort(clientDisconnected()).catch(() => {})
    if (!this.#isRecorded) this.#onDisconnect()
  }

  /** Everything sent so far and `last`, for repeats of the request; undefined where it was too large to record. */
  recorded(last: Bytes): Bytes | undefined {
    return this.#recorder?.whole(last)
  }

  get #isRecorded(): boolean {
    return this.#recorder?.complete === true
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#gone) return this.#afterLeaving()
    if (this.#waiting === 0) this.#sinceWait.restart()
    this.#waiting += 1
    try {
      await this.#writer.write(bytes)
      this.#sinceSent.restart()
      this.#sinceWait.restart()
    } catch {
      this.leave()
      return await this.#afterLeaving()
    } finally {
      this.#waiting -= 1
    }
  }

  /** After the client has disconnected, the answer continues only while it is recorded. */
  #afterLeaving(): Promise<void> {
    if (this.#isRecorded) return Promise.resolve()
    this.#onDisconnect()
    return Promise.reject(clientDisconnected())
  }

  #sendKeepAlives(wait = this.#keepAliveMs): void {
    this.#timer = setTimeout(() => {
      const left = this.#keepAliveMs - this.#sinceSent.elapsed()
      if (left > 0) return this.#sendKeepAlives(left)
      const mayComment = this.#waiting === 0 && !this.#boundary.insideEvent
      if (mayComment) void this.send(KEEP_ALIVE).catch(() => {})
      this.#sendKeepAlives()
    }, wait)
  }
}
