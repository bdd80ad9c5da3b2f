import { concatBytes, type Bytes } from '../../protocol/bytes.ts'

/** Maximum number of buffered bytes before the source is paused. */
const MAX_WAITING_BYTES = 65_536

/**
 * Reads a stream and joins the chunks that arrive while earlier ones are being processed: a single chunk is passed on at
 * once, and many small ones cost as much as one.
 */
export class JoinedChunks {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #ended = false
  #failure: { readonly reason: unknown } | undefined
  #changed = Promise.withResolvers<void>()
  #taken = Promise.withResolvers<void>()

  constructor(source: ReadableStream<Uint8Array>) {
    this.#reader = source.getReader()
    void this.#pump()
  }

  /**
   * Everything that has arrived, at least one byte; undefined once the source has ended.
   * @throws unknown the error of the source, at once
   */
  async take(): Promise<Bytes | undefined> {
    while (this.#waitingBytes === 0 && !this.#ended) await this.#changed.promise
    if (this.#failure !== undefined) throw this.#failure.reason
    if (this.#waitingBytes === 0) return undefined
    const joined = concatBytes(...this.#waiting)
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#taken.resolve()
    return joined
  }

  async cancel(reason: unknown): Promise<void> {
    this.#ended = true
    this.#taken.resolve()
    await this.#reader.cancel(reason)
  }

  async #pump(): Promise<void> {
    try {
      while (!this.#ended) {
        const { done, value } = await this.#reader.read()
        if (done) break
        this.#waiting.push(value)
        this.#waitingBytes += value.length
        this.#tell()
        if (this.#waitingBytes >= MAX_WAITING_BYTES) await this.#room()
      }
    } catch (reason) {
      this.#failure = { reason }
    }
    this.#ended = true
    this.#tell()
  }

  #tell(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #room(): Promise<void> {
    this.#taken = Promise.withResolvers()
    return this.#taken.promise
  }
}
