import { fromUtf8, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'

/**
 * Reads a binary document from its first byte to its last. Every method throws MalformedEvidence when the document does
 * not contain what is requested. No memory is reserved for a length that the document only states.
 */
export class ByteCursor {
  readonly #input: Bytes
  readonly #document: string
  #offset = 0

  /** @param document the kind of document, for error messages */
  constructor(input: Bytes, document: string) {
    this.#input = input
    this.#document = document
  }

  /** How many bytes were not read yet. */
  get left(): number {
    return this.#input.length - this.#offset
  }

  /** The next byte, which stays unread; undefined at the end. */
  peek(): number | undefined {
    return this.#input[this.#offset]
  }

  take(length: number): Bytes {
    if (length > this.left) throw this.fault('it ends too early')
    const start = this.#offset
    this.#offset += length
    return this.#input.slice(start, this.#offset)
  }

  /** Text in UTF-8. */
  text(length: number): string {
    const bytes = this.take(length)
    try {
      return fromUtf8(bytes)
    } catch {
      throw this.fault('not UTF-8')
    }
  }

  bigEndian(length: number): number {
    return this.take(length).reduce((total, byte) => total * 256 + byte, 0)
  }

  littleEndian(length: number): number {
    return this.take(length).reduceRight((total, byte) => total * 256 + byte, 0)
  }

  /** Requires that the document ends here. */
  end(): void {
    if (this.left > 0) throw this.fault('something follows it')
  }

  /** Makes the error for a document that cannot be read. */
  fault(reason: string): MalformedEvidence {
    return new MalformedEvidence(this.#document, reason)
  }
}
