const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** The parts of a request that the mock reads. */
export interface RawRequest {
  /** Such as `/v1/chat/completions`. */
  readonly target: string
  readonly body: Buffer
}

/**
 * Splits the bytes of one HTTP/1.1 connection into requests, which are never pipelined. Parses only what the mock
 * needs.
 */
export class RequestReader {
  #chunks: Buffer[] = []
  #length = 0
  /** Undefined until the head is complete; infinity for a chunked body. */
  #wanted: number | undefined
  #bodyAt = 0
  #target = ''

  /** Adds bytes; returns the request when they complete one. */
  push(bytes: Buffer): RawRequest | undefined {
    this.#chunks.push(bytes)
    this.#length += bytes.length
    if (this.#wanted === undefined && !this.#readHead()) return undefined
    if (this.#wanted === Number.POSITIVE_INFINITY) {
      if (!bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) return undefined
    } else if (this.#length < this.#bodyAt + (this.#wanted ?? 0)) return undefined
    const body = this.#joined().subarray(this.#bodyAt)
    this.#chunks = []
    this.#length = 0
    this.#wanted = undefined
    return { target: this.#target, body }
  }

  #joined(): Buffer {
    const [only] = this.#chunks
    return this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks)
  }

  #readHead(): boolean {
    const bytes = this.#joined()
    this.#chunks = [bytes]
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) return false
    const head = bytes.toString('latin1', 0, end)
    this.#bodyAt = end + HEAD_END.length
    this.#target = head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/'))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    this.#wanted = length === undefined && chunked ? Number.POSITIVE_INFINITY : Number(length ?? 0)
    return true
  }
}
