import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { BrokenStream } from './broken-stream.ts'

/** One dispatched event: the joined `data` lines, and whether its `event` field is `error`. */
export interface ServerSentEvent {
  readonly data: string
  readonly namedError: boolean
}

/** Maximum length of a line and of an event, in bytes. Whole tool arguments and images arrive as one line. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
const DATA = [0x64, 0x61, 0x74, 0x61]
const EVENT = [0x65, 0x76, 0x65, 0x6e, 0x74]
const ERROR = [0x65, 0x72, 0x72, 0x6f, 0x72]
const MIN_BUFFER = 1024
/** Shared: most streams never split a line across reads. */
const NOTHING: Bytes = new Uint8Array(0)
const MAX_RETAINED_BUFFER = 64 * 1024

/** Bytes that an unfinished event may hold before more memory is requested. Nearly all events are far smaller. */
const UNASKED_BYTES = 64 * 1024

/**
 * Reserves memory until the stream is over.
 * @throws unknown when there is none
 */
export type TakeMemory = (bytes: number) => void

/**
 * Parses server-sent events by the rules of the HTML Standard ("Interpreting an event stream"): CR, LF and CRLF line ends, a
 * leading byte order mark, comments, several `data` lines, unknown fields ignored, an unfinished event at the end dropped.
 *
 * It works on bytes, because a text parser would not do: the result must not depend on how the network split the bytes, so
 * an event before an invalid byte must be emitted even if both arrive in the same read, and the length limit must count
 * bytes. Text is decoded once for each data line, strictly. Time is linear in the input; memory is one unfinished line and
 * the data of one unfinished event.
 */
export class EventFramer {
  readonly #onEvent: (event: ServerSentEvent) => void
  readonly #takeMemory: TakeMemory
  /** Bytes of a line that began in an earlier read. */
  #partial: Bytes = NOTHING
  #partialLength = 0
  #firstLine = true
  #afterCr = false
  #data: string | undefined
  #dataBytes = 0
  #namedError = false
  #lineBytes = 0
  #quietBytes = 0
  /** Bytes that an unfinished event may hold with the memory reserved so far. */
  #allowedBytes = UNASKED_BYTES

  /**
   * @param onEvent called for each event as soon as its blank line is read; its exceptions end the push
   * @param takeMemory called before an unfinished event holds more bytes than any before
   */
  constructor(onEvent: (event: ServerSentEvent) => void, takeMemory: TakeMemory = () => {}) {
    this.#onEvent = onEvent
    this.#takeMemory = takeMemory
  }

  /** Bytes of all complete lines (each counted with one byte of line end), except those of an unfinished event. */
  get quietBytes(): number {
    return this.#quietBytes
  }

  /**
   * Processes the next bytes.
   * @throws BrokenStream `too_long` when an event exceeds its limit, `malformed` when a data line is not UTF-8,
   *   `no_memory` when there is none for an event
   */
  push(bytes: Uint8Array): void {
    let start = 0
    if (this.#afterCr && bytes.length > 0) {
      this.#afterCr = false
      if (bytes[0] === LF) start = 1
    }
    let lf = bytes.indexOf(LF, start)
    let cr = bytes.indexOf(CR, start)
    while (lf !== -1 || cr !== -1) {
      const atCr = cr !== -1 && (lf === -1 || cr < lf)
      const end = atCr ? cr : lf
      this.#endLine(bytes.subarray(start, end))
      start = end + 1
      if (atCr && start === bytes.length) this.#afterCr = true
      if (atCr && bytes[start] === LF) start += 1
      if (lf !== -1 && lf < start) lf = bytes.indexOf(LF, start)
      if (cr !== -1 && cr < start) cr = bytes.indexOf(CR, start)
    }
    if (start < bytes.length) this.#keep(bytes.subarray(start))
  }

  #keep(bytes: Uint8Array): void {
    const length = this.#partialLength + bytes.length
    if (length > MAX_EVENT_BYTES) throw new BrokenStream('too_long')
    if (length > this.#partial.length) {
      const room = Math.min(MAX_EVENT_BYTES, Math.max(MIN_BUFFER, length, 2 * this.#partial.length))
      this.#allow(room + this.#dataBytes)
      const grown = new Uint8Array(room)
      grown.set(this.#partial.subarray(0, this.#partialLength))
      this.#partial = grown
    }
    this.#partial.set(bytes, this.#partialLength)
    this.#partialLength = length
  }

  #endLine(rest: Uint8Array): void {
    if (this.#partialLength === 0) {
      this.#readLine(rest)
      return
    }
    this.#keep(rest)
    const line = this.#partial.subarray(0, this.#partialLength)
    this.#partialLength = 0
    this.#readLine(line)
    if (this.#partial.length > MAX_RETAINED_BUFFER) this.#partial = NOTHING
  }

  #readLine(raw: Uint8Array): void {
    if (raw.length > MAX_EVENT_BYTES) throw new BrokenStream('too_long')
    const line = this.#firstLine && startsWith(raw, BYTE_ORDER_MARK) ? raw.subarray(3) : raw
    this.#firstLine = false
    this.#lineBytes += raw.length + 1
    if (line.length === 0) this.#dispatch()
    else if (isField(line, DATA)) this.#addData(fieldValue(line, DATA))
    else if (isField(line, EVENT)) this.#namedError = equals(fieldValue(line, EVENT), ERROR)
    if (this.#data === undefined) this.#quietBytes = this.#lineBytes
  }

  #addData(value: Uint8Array): void {
    this.#dataBytes += value.length + 1
    if (this.#dataBytes > MAX_EVENT_BYTES) throw new BrokenStream('too_long')
    this.#allow(this.#partial.length + this.#dataBytes)
    const text = decode(value)
    this.#data = this.#data === undefined ? text : `${this.#data}\n${text}`
  }

  #allow(bytes: number): void {
    if (bytes <= this.#allowedBytes) return
    try {
      this.#takeMemory(bytes - this.#allowedBytes)
    } catch {
      throw new BrokenStream('no_memory')
    }
    this.#allowedBytes = bytes
  }

  #dispatch(): void {
    const data = this.#data
    const namedError = this.#namedError
    this.#data = undefined
    this.#dataBytes = 0
    this.#namedError = false
    if (data !== undefined) this.#onEvent({ data, namedError })
  }
}

function startsWith(bytes: Uint8Array, prefix: readonly number[]): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[i] !== prefix[i]) return false
  return true
}

function equals(bytes: Uint8Array, other: readonly number[]): boolean {
  return bytes.length === other.length && startsWith(bytes, other)
}

function isField(line: Uint8Array, name: readonly number[]): boolean {
  if (line.length > name.length && line[name.length] !== COLON) return false
  return startsWith(line, name)
}

/** The value after the colon, without one leading space; empty where the line is only a field name. */
function fieldValue(line: Uint8Array, name: readonly number[]): Uint8Array {
  const start = name.length + 1
  return line.subarray(line[start] === SPACE ? start + 1 : start)
}

function decode(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw new BrokenStream('malformed')
  }
}
