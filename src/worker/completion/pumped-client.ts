import { END_OF_EVENT } from '../stream/event-boundary.ts'
import type { PumpedEnd } from './open-stream.ts'
import { openPipe } from './pipe.ts'

/**
 * The client's end of a stream that the runtime moves: for bytes that the daemon has written and hashed from their start.
 * Frames cost a third of what they cost where this program sees each of them.
 */
export class PumpedClient implements PumpedEnd {
  readonly seesBytes = false
  readonly readable: ReadableStream<Uint8Array>
  readonly #writable: WritableStream<Uint8Array>
  readonly #onDisconnect: () => void
  readonly #stop = new AbortController()
  /** Whether the source failed, perhaps in the middle of an event. */
  #cutOff = false
  #writer: WritableStreamDefaultWriter<Uint8Array> | undefined

  /** @param onDisconnect called when the client has disconnected */
  constructor(onDisconnect: () => void) {
    const { readable, writable } = openPipe()
    this.readable = readable
    this.#writable = writable
    this.#onDisconnect = onDisconnect
  }

  async take(head: Uint8Array, body: ReadableStream<Uint8Array>): Promise<void> {
    const writer = this.#writable.getWriter()
    // Kept so that `abandon` reaches a client that does not even read the head.
    this.#writer = writer
    try {
      await writer.write(head)
    } catch (error) {
      this.#onDisconnect()
      throw error
    } finally {
      writer.releaseLock()
      this.#writer = undefined
    }
    const options = { preventClose: true, preventAbort: true, signal: this.#stop.signal }
    try {
      await body.pipeTo(this.#writable, options)
    } catch (error) {
      this.#cutOff = true
      if (this.#isBroken()) this.#onDisconnect()
      throw error
    }
  }

  send(events: Uint8Array): Promise<void> {
    if (events.length === 0) return Promise.resolve()
    this.#writer ??= this.#writable.getWriter()
    return this.#writer.write(events)
  }

  /** Whether the client's side has failed; a failure of the source leaves it open. */
  #isBroken(): boolean {
    this.#writer ??= this.#writable.getWriter()
    return this.#writer.desiredSize === null
  }

  seal(): Promise<string> {
    throw new Error('internal error: bytes that were not seen have no digest here')
  }

  async finish(last: Uint8Array): Promise<void> {
    try {
      this.#writer ??= this.#writable.getWriter()
      if (this.#cutOff) await this.#writer.write(END_OF_EVENT)
      await this.#writer.write(last)
      await this.#writer.close()
    } catch {
      // The connection ended before the last bytes; the settlement they report is stored already.
    }
  }

  /** Closes the connection of a client that does not read. */
  abandon(): void {
    this.#stop.abort()
    void this.#writer?.abort().catch(() => {})
  }
}
