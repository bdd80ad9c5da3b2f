/** Content types of TLS records (RFC 8446 section 5.1). */
const APPLICATION_DATA = 23
const HEADER_BYTES = 5

/**
 * Detects the end of a TLS handshake from the client's record headers alone: it is over with the first complete record
 * of application data. In TLS 1.3 that record holds the client's Finished, in TLS 1.2 the first request.
 */
export class HandshakeWatch {
  readonly #header = new Uint8Array(HEADER_BYTES)
  #headerLength = 0
  #bodyLeft = 0

  /** Reads the client's next bytes. Returns true if the handshake ends with them. */
  take(bytes: Uint8Array): boolean {
    let at = 0
    while (at < bytes.length) {
      if (this.#headerLength < HEADER_BYTES) {
        this.#header[this.#headerLength++] = bytes[at++] ?? 0
        if (this.#headerLength < HEADER_BYTES) continue
        this.#bodyLeft = (this.#header[3] ?? 0) * 256 + (this.#header[4] ?? 0)
      }
      const taken = Math.min(this.#bodyLeft, bytes.length - at)
      at += taken
      this.#bodyLeft -= taken
      if (this.#bodyLeft > 0) return false
      if (this.#header[0] === APPLICATION_DATA) return true
      this.#headerLength = 0
    }
    return false
  }
}
