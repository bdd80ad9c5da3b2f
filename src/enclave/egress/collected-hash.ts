import { createHash } from 'node:crypto'

/** Each update of a hash costs 1.5 us, however small, so about twenty frames are collected for one update. */
const BUFFER_BYTES = 4 * 1024

/** SHA-256 (FIPS 180-4) over bytes that arrive in small pieces. */
export class CollectedHash {
  readonly #hash = createHash('sha256')
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #length = 0

  /** Takes the next bytes and keeps no reference to them. */
  update(bytes: Uint8Array): void {
    if (this.#length + bytes.length > BUFFER_BYTES) this.#flush()
    if (bytes.length > BUFFER_BYTES) {
      this.#hash.update(bytes)
      return
    }
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** The digest of all bytes, as 64 lowercase hex digits. Must be called once, as the last method. */
  finish(): string {
    this.#flush()
    return this.#hash.digest('hex')
  }

  #flush(): void {
    if (this.#length > 0) this.#hash.update(this.#buffer.subarray(0, this.#length))
    this.#length = 0
  }
}
