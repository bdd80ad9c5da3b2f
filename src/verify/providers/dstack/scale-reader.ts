import type { Bytes } from '../../../protocol/bytes.ts'
import { ByteCursor } from './byte-cursor.ts'

/** The size of a length by its two lowest bits, bytes (SCALE, compact integers). */
const COMPACT_BYTES = [1, 2, 4] as const

/**
 * Reads SCALE values (the codec of Substrate) one after the other. No memory is reserved for a length beyond the
 * input's end. Every method throws MalformedEvidence when the input ends before the value does.
 */
export class ScaleReader {
  readonly #cursor: ByteCursor

  constructor(input: Bytes, document: string) {
    this.#cursor = new ByteCursor(input, document)
  }

  byte(): number {
    return this.#cursor.bigEndian(1)
  }

  fixed(length: number): Bytes {
    return this.#cursor.take(length)
  }

  bytes(): Bytes {
    return this.#cursor.take(this.#length())
  }

  text(): string {
    return this.#cursor.text(this.#length())
  }

  /** Every item takes at least one byte, so a list has at most as many items as there are bytes left. */
  list<Item>(read: () => Item): Item[] {
    const count = this.#length()
    if (count > this.#cursor.left) throw this.#cursor.fault('it ends too early')
    return Array.from({ length: count }, read)
  }

  end(): void {
    this.#cursor.end()
  }

  /** The fourth form, for lengths of 2^30 and more, is refused: no input is that long. */
  #length(): number {
    const form = COMPACT_BYTES[(this.#cursor.peek() ?? 3) & 3]
    if (form === undefined) throw this.#cursor.fault('an impossible length')
    return this.#cursor.littleEndian(form) >>> 2
  }
}
