import type { Bytes } from '../../protocol/bytes.ts'

const encoder = new TextEncoder()

/** Puts bytes and text together in one growing buffer. */
export class ByteSink {
  #bytes: Bytes
  #length = 0

  /** @param expected bytes to make room for at once; more is taken as needed */
  constructor(expected: number) {
    this.#bytes = new Uint8Array(expected)
  }

  /** Appends the bytes from `start` up to `end`. */
  copy(source: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start)
    this.#bytes.set(source.subarray(start, end), this.#length)
    this.#length += end - start
  }

  /** Appends text as UTF-8. */
  text(text: string): void {
    const encoded = encoder.encode(text)
    this.copy(encoded, 0, encoded.length)
  }

  /** Everything appended. The sink must not be used afterwards. */
  finish(): Bytes {
    return new Uint8Array(this.#bytes.buffer.transfer(this.#length))
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const roomy = Math.max(needed, 2 * this.#bytes.length)
    this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(roomy))
  }
}
