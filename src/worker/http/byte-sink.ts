import type { Bytes } from '../../protocol/bytes.ts'
import { keepShape } from '../../protocol/keep-shape.ts'

const encoder = new TextEncoder()

/** Up to this many bytes, a loop is faster than a platform call. */
const SHORT = 64

const ASCII = /^[\0-\x7f]*$/

/** Collects bytes and text in one growing buffer. */
export class ByteSink {
  #bytes: Bytes
  #length = 0

  /** @param expected initial size of the buffer, bytes; it grows as needed */
  constructor(expected: number) {
    this.#bytes = new Uint8Array(expected)
  }

  static {
    keepShape(new ByteSink(0))
  }

  /** Appends the bytes from `start` up to `end`. */
  copy(source: Uint8Array, start: number, end: number): void {
    const length = end - start
    this.#reserve(length)
    if (length > SHORT) this.#bytes.set(source.subarray(start, end), this.#length)
    else for (let i = 0; i < length; i++) this.#bytes[this.#length + i] = source[start + i] ?? 0
    this.#length += length
  }

  /** Appends text as UTF-8. */
  text(text: string): void {
    if (text.length > SHORT || !ASCII.test(text)) {
      const encoded = encoder.encode(text)
      this.copy(encoded, 0, encoded.length)
      return
    }
    this.#reserve(text.length)
    for (let i = 0; i < text.length; i++) this.#bytes[this.#length++] = text.charCodeAt(i)
  }

  /** Everything appended. The sink must not be used afterwards. */
  finish(): Bytes {
    return new Uint8Array(this.#bytes.buffer.transfer(this.#length))
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const capacity = Math.max(needed, 2 * this.#bytes.length)
    this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(capacity))
  }
}
