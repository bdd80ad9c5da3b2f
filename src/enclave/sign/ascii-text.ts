/** Writes an ASCII text of known length into memory allocated once. */
export class AsciiText {
  readonly #bytes: Buffer
  #length = 0

  constructor(length: number) {
    this.#bytes = Buffer.allocUnsafe(length)
  }

  /** Number of characters written so far. */
  get length(): number {
    return this.#length
  }

  /**
   * Appends a part.
   * @throws RangeError when the text would exceed its announced length
   */
  add(part: string | Uint8Array): void {
    const end = this.#length + part.length
    if (end > this.#bytes.length) throw new RangeError('a text longer than its memory')
    if (typeof part === 'string') this.#bytes.write(part, this.#length, 'latin1')
    else this.#bytes.set(part, this.#length)
    this.#length = end
  }

  /** The text written since `start`; a view that later writes do not change. */
  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.#length)
  }

  /**
   * The whole text.
   * @throws RangeError when it is incomplete: the rest of the memory is uninitialised
   */
  whole(): Buffer {
    if (this.#length !== this.#bytes.length) throw new RangeError('a text shorter than its memory')
    return this.#bytes
  }
}
