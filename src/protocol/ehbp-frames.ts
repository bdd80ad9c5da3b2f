import { concatBytes, type Bytes } from './bytes.ts'

/** Each frame of an encrypted body: the length of its ciphertext as a big-endian uint32, then the ciphertext. */
const LENGTH_BYTES = 4

/** A body that does not consist of frames, or has a frame that is too large. */
export class FramingError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FramingError'
  }
}

/** The wire format of a frame. */
export function encodeFrame(ciphertext: Uint8Array): Bytes {
  const length = new Uint8Array(LENGTH_BYTES)
  new DataView(length.buffer).setUint32(0, ciphertext.length)
  return concatBytes(length, ciphertext)
}

/** Splits a body, given in pieces of any size, into the ciphertexts of its frames. */
export class FrameReader {
  readonly #maxBytes: number
  #rest: Uint8Array = new Uint8Array()

  /** @param maxBytes maximum size of one ciphertext; a larger announced size is refused before memory is allocated */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * The ciphertexts that are complete with this piece. Empty frames are skipped, as the protocol requires.
   * @throws FramingError when the announced size of a frame exceeds the maximum
   */
  *push(piece: Uint8Array): Generator<Uint8Array, void, undefined> {
    this.#rest = this.#rest.length === 0 ? piece : concatBytes(this.#rest, piece)
    while (this.#rest.length >= LENGTH_BYTES) {
      const { buffer, byteOffset } = this.#rest
      const length = new DataView(buffer, byteOffset, LENGTH_BYTES).getUint32(0)
      if (length > this.#maxBytes) throw new FramingError(`a frame of ${length} bytes is too large`)
      const end = LENGTH_BYTES + length
      if (this.#rest.length < end) return
      const ciphertext = this.#rest.subarray(LENGTH_BYTES, end)
      this.#rest = this.#rest.subarray(end)
      if (length > 0) yield ciphertext
    }
  }

  /** @throws FramingError when the body ended within a frame */
  end(): void {
    if (this.#rest.length > 0) throw new FramingError('the body ends within a frame')
  }
}
