import { CHUNK_WINDOW_BYTES, MAX_CHUNK_BYTES } from '../../protocol/link-messages.ts'

/**
 * The chunks of one stream that its client has not taken yet: those on their way, at most one window of bytes, and those
 * that wait behind them.
 */
export class ChunkWindow {
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #underWay = 0

  /** Whether more should be written only once the client has taken some. */
  get isFull(): boolean {
    return this.#underWay + this.#waitingBytes >= CHUNK_WINDOW_BYTES
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Adds bytes, in chunks of the size that a message may have. */
  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
      this.#waiting.push(bytes.subarray(at, at + MAX_CHUNK_BYTES))
    }
    this.#waitingBytes += bytes.length
  }

  /** Takes out the next chunk if it fits into the window now; it is on its way then. */
  next(): Uint8Array | undefined {
    const [chunk] = this.#waiting
    if (chunk === undefined || this.#underWay + chunk.length > CHUNK_WINDOW_BYTES) return undefined
    this.#waiting.shift()
    this.#waitingBytes -= chunk.length
    this.#underWay += chunk.length
    return chunk
  }

  /**
   * The client has taken this many more bytes.
   * @throws RangeError when that is more than are on their way
   */
  taken(bytes: number): void {
    if (bytes > this.#underWay) throw new RangeError('more was taken than was sent')
    this.#underWay -= bytes
  }

  /** Drops the waiting chunks. */
  clear(): void {
    this.#waiting = []
    this.#waitingBytes = 0
  }
}
