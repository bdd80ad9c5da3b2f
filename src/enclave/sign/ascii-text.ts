/** Bytes of an ASCII text whose length is known beforehand, written from its start into memory taken once. */
export class AsciiText {
  readonly #bytes: Buffer
  #length = 0

  constructor(length: number) {
    this.#bytes = Buffer.allocUnsafe(length)
  }

  /** Of what was written so far. */
  get length(): number {
    return this.#length
  }

  /** @throws RangeError when the text would be longer than was said */
  add(part: string | Uint8Array): void {
    const end = this.#length + part.length
    if (end > this.#bytes.length) throw new RangeError('a text longer than its memory')
    if (typeof part === 'string') this.#bytes.write(part, this.#length, 'latin1')
    else this.#bytes.set(part, this.#length)
    this.#length = end
  }

  /** What was written from there on; a view that later writing does not change. */
  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.#length)
  }

  /** @throws RangeError when something is missing: the memory behind it held something else before */
  whole(): Buffer {
    if (this.#length !== this.#bytes.length) throw new RangeError('a text shorter than its memory')
    return this.#bytes
  }
}
