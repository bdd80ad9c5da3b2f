const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const LINE_FEED = 0x0a
const DONE = Buffer.from('data: [DONE]')

/** The last events of streams in the Responses and Messages APIs; their data may have any length. */
const LAST_EVENTS = ['event: response.completed', 'event: message_stop'].map((line) =>
  Buffer.from(line),
)

/** The progress of one answer. */
export interface AnswerProgress {
  status: number
  /** Events of the stream so far. */
  frames: number
  /** Whether the end mark of the stream's API format was seen. */
  done: boolean
  bytes: number
  complete: boolean
}

/** Follows the bytes of one HTTP/1.1 answer; counts events by their blank lines, parses nothing. */
export class AnswerReader {
  #progress: AnswerProgress = fresh()
  #head: Buffer | undefined
  /** Remaining bytes of the body; infinity for a chunked one. */
  #left: number | undefined
  #tail = Buffer.alloc(0)

  /** Resets the reader for the next answer on the same connection. */
  reset(): void {
    this.#progress = fresh()
    this.#head = undefined
    this.#left = undefined
    this.#tail = Buffer.alloc(0)
  }

  push(bytes: Buffer): AnswerProgress {
    const body = this.#left === undefined ? this.#readHead(bytes) : bytes
    if (body !== undefined) this.#readBody(body)
    return this.#progress
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const joined = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes])
    const end = joined.indexOf(HEAD_END)
    if (end < 0) {
      this.#head = joined
      return undefined
    }
    const head = joined.toString('latin1', 0, end)
    this.#progress.status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#left = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
    return joined.subarray(end + HEAD_END.length)
  }

  #readBody(body: Buffer): void {
    const progress = this.#progress
    progress.bytes += body.length
    if (this.#left !== Number.POSITIVE_INFINITY) {
      this.#left = (this.#left ?? 0) - body.length
      progress.complete = this.#left <= 0
      return
    }
    // Marks may be split between two reads.
    const seen = this.#tail.length === 0 ? body : Buffer.concat([this.#tail, body])
    progress.frames += blankLines(seen, this.#tail.length)
    const ends = seen.subarray(-64)
    progress.done ||= ends.includes(DONE) || LAST_EVENTS.some((line) => seen.includes(line))
    progress.complete = ends.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
    this.#tail = Buffer.from(seen.subarray(-32))
  }
}

/** Number of blank lines whose second line feed is at `from` or later. */
function blankLines(bytes: Buffer, from: number): number {
  let count = 0
  for (let at = bytes.indexOf(LINE_FEED, from); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) {
    if (at > 0 && bytes[at - 1] === LINE_FEED) count += 1
  }
  return count
}

function fresh(): AnswerProgress {
  return { status: 0, frames: 0, done: false, bytes: 0, complete: false }
}
