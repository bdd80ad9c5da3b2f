import { createDigest } from '../stream/digest.ts'
import { KEEP_ALIVE } from '../stream/error-event.ts'

/**
 * The client's end of a stream. It says nothing until it is started; from then on every silence is filled
 * with comments, which keep proxies alive and are the only way to see that a client has left: the runtime
 * notices a closed connection at its next write.
 */
export class ClientStream {
  readonly readable: ReadableStream
  /** Resolves when headers may go out. */
  readonly begun: Promise<void>
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #digest = createDigest()
  readonly #keepAliveMs: number
  readonly #now: () => number
  readonly #onGone: () => void
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastSentAt = 0
  #sending = 0
  #sendingSince = 0
  #started = false
  readonly #begin: () => void

  constructor(keepAliveMs: number, now: () => number, onGone: () => void) {
    const pipe = new IdentityTransformStream()
    this.readable = pipe.readable
    this.#writer = pipe.writable.getWriter()
    this.#keepAliveMs = keepAliveMs
    this.#now = now
    this.#onGone = onGone
    const { promise, resolve } = Promise.withResolvers<void>()
    this.begun = promise
    this.#begin = resolve
    this.#writer.closed.catch(() => onGone())
  }

  /** Whether headers are out, so that a failure can no longer become a status. */
  get started(): boolean {
    return this.#started
  }

  /** Headers go out now; silences are filled from here on. */
  start(): void {
    if (this.#started) return
    this.#started = true
    this.#lastSentAt = this.#now()
    this.#fillSilence()
    this.#begin()
  }

  /** Sends whole events; resolves once the client's connection has taken them. */
  async send(events: Uint8Array): Promise<void> {
    if (events.length === 0) return
    this.#digest.update(events)
    await this.#write(events)
  }

  /** Ends the part a receipt can speak of: its SHA-256 in hex. Nothing but `finish` may follow. */
  seal(): Promise<string> {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    return this.#digest.finish()
  }

  /** Sends the last bytes and ends the stream. A client that has left by now has missed nothing it could use. */
  async finish(last: Uint8Array): Promise<void> {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    try {
      await this.#write(last)
      await this.#writer.close()
    } catch {
      // The connection ended before the last bytes; what they report is settled and stored.
    }
  }

  /** Ends the connection under a client that has taken nothing of what is waiting for it for so long. */
  abandonAfter(ms: number): void {
    if (this.#sending === 0 || this.#now() - this.#sendingSince < ms) return
    this.#writer.abort().catch(() => {})
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#sending === 0) this.#sendingSince = this.#now()
    this.#sending++
    try {
      await this.#writer.write(bytes)
    } catch (error) {
      this.#onGone()
      throw error
    } finally {
      this.#sending--
      this.#lastSentAt = this.#now()
    }
  }

  #fillSilence(wait = this.#keepAliveMs): void {
    this.#timer = setTimeout(() => {
      const left = this.#keepAliveMs - (this.#now() - this.#lastSentAt)
      if (left > 0) return this.#fillSilence(left)
      if (this.#sending === 0) void this.send(KEEP_ALIVE).catch(() => {})
      this.#fillSilence()
    }, wait)
  }
}
