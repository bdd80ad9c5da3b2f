import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'

/** The form of a length by its two lowest bits: how many bytes it has (SCALE, compact integers). */
const COMPACT_BYTES = [1, 2, 4] as const

/**
 * Reads values in SCALE (the codec of Substrate) one after the other. No length is believed beyond the input's end.
 * Every method throws MalformedEvidence when the input ends before the value does.
 */
export class ScaleReader {
  readonly #input: Bytes
  readonly #document: string
  #offset = 0

  constructor(input: Bytes, document: string) {
    this.#input = input
    this.#document = document
  }

  byte(): number {
    return this.fixed(1)[0] ?? 0
  }

  fixed(length: number): Bytes {
    const end = this.#offset + length
    if (end > this.#input.length) throw this.#fault('it ends too early')
    const bytes = this.#input.slice(this.#offset, end)
    this.#offset = end
    return bytes
  }

  bytes(): Bytes {
    return this.fixed(this.#length())
  }

  text(): string {
    try {
      return fromUtf8(this.bytes())
    } catch (error) {
      throw error instanceof MalformedEvidence ? error : this.#fault('not UTF-8')
    }
  }

  /** Every item takes a byte or more. */
  list<Item>(read: () => Item): Item[] {
    const count = this.#length()
    if (count > this.#input.length - this.#offset) throw this.#fault('it ends too early')
    return Array.from({ length: count }, read)
  }

  end(): void {
    if (this.#offset !== this.#input.length) throw this.#fault('something follows it')
  }

  /** Lengths of 2^30 and more, the fourth form, are beyond every input. */
  #length(): number {
    const form = COMPACT_BYTES[(this.#input[this.#offset] ?? 3) & 3]
    if (form === undefined) throw this.#fault('an impossible length')
    const bytes = this.fixed(form)
    return bytes.reduceRight((total, byte) => total * 256 + byte, 0) >>> 2
  }

  #fault(what: string): MalformedEvidence {
    return new MalformedEvidence(this.#document, what)
  }
}
