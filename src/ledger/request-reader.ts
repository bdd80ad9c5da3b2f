/** A request of the link: POST with a body of known length, or GET without. */
export interface LinkRequest {
  readonly path: string
  readonly body: Buffer
  /** Whether the peer wants the connection closed after the answer. */
  readonly isLast: boolean
}

export interface ReaderLimits {
  readonly maxHeadBytes: number
  readonly maxBodyBytes: number
}

interface Head {
  readonly path: string
  readonly isLast: boolean
  /** Where the body begins and ends, from the start of the head. */
  readonly bodyAt: number
  readonly endAt: number
}

const HEAD_END = '\r\n\r\n'

const REQUEST_LINE = /^(?:GET|POST) (\/[!-~]*) HTTP\/1\.1$/
/** RFC 9110, section 5: a token, and printable characters without a line break, with the blanks around them. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\u0080-\u00FF]*)$/
const LENGTH = /^[ \t]*([0-9]{1,15})[ \t]*$/

/**
 * Splits the bytes of one HTTP/1.1 connection (RFC 9112) into requests. The only peer is a worker behind a pinned
 * certificate, whose requests say their length and wait for the answer before the next; whatever else arrives is refused,
 * never guessed at. Node's own server spends more on the objects around a request than the ledger on what is in it.
 */
export class RequestReader {
  readonly #limits: ReaderLimits
  #chunks: Buffer[] = []
  #length = 0
  #head: Head | undefined

  constructor(limits: ReaderLimits) {
    this.#limits = limits
  }

  /**
   * Adds bytes; returns the request when they complete one.
   * @throws Error when they are no such request, are too many, or go on after its end
   */
  push(bytes: Buffer): LinkRequest | undefined {
    this.#chunks.push(bytes)
    this.#length += bytes.length
    this.#head ??= this.#readHead()
    if (this.#head === undefined || this.#length < this.#head.endAt) return undefined
    const { path, isLast, bodyAt, endAt } = this.#head
    if (this.#length > endAt) throw new Error('bytes after the end of a request')
    const body = this.#joined().subarray(bodyAt)
    this.#chunks = []
    this.#length = 0
    this.#head = undefined
    return { path, body, isLast }
  }

  #readHead(): Head | undefined {
    const { maxHeadBytes, maxBodyBytes } = this.#limits
    const bytes = this.#joined()
    const end = bytes.subarray(0, maxHeadBytes).indexOf(HEAD_END)
    if (end < 0 && bytes.length >= maxHeadBytes) throw new Error('a head without end')
    if (end < 0) return undefined
    const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
    const path = REQUEST_LINE.exec(first)?.[1]
    if (path === undefined) throw new Error('no request line')
    const { length, isLast } = readFields(lines)
    if (length > maxBodyBytes) throw new Error('a body that is too large')
    const bodyAt = end + HEAD_END.length
    return { path, isLast, bodyAt, endAt: bodyAt + length }
  }

  #joined(): Buffer {
    const [only] = this.#chunks
    if (only !== undefined && this.#chunks.length === 1) return only
    const all = Buffer.concat(this.#chunks, this.#length)
    this.#chunks = [all]
    return all
  }
}

function readFields(lines: readonly string[]): {
  readonly length: number
  readonly isLast: boolean
} {
  let length: number | undefined
  let isLast = false
  for (const line of lines) {
    const [, name, value = ''] = FIELD.exec(line) ?? []
    if (name === undefined) throw new Error('a line that is no header field')
    switch (name.toLowerCase()) {
      case 'content-length': {
        const [, digits] = LENGTH.exec(value) ?? []
        if (length !== undefined || digits === undefined) throw new Error('a length that is none')
        length = Number(digits)
        break
      }
      case 'connection':
        isLast ||= /(^|[ \t,])close([ \t,]|$)/i.test(value)
        break
      case 'transfer-encoding':
      case 'expect':
      case 'upgrade':
        throw new Error('a request of another kind')
      default:
    }
  }
  return { length: length ?? 0, isLast }
}
