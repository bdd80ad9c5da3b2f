import type { AnswerHead } from '../../protocol/link-messages.ts'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerHeaders, LinkAnswer } from './link-answer.ts'

/** Decodes like `Response.text`: drops a byte order mark, and replaces invalid UTF-8 by U+FFFD. */
const decoder = new TextDecoder()

/**
 * An answer that came as a message, without a `Response`: creating one with its headers would cost more than everything else
 * that the worker does with a small answer of the daemon.
 */
export class MessageAnswer implements LinkAnswer {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly whole: unknown
  readonly #bytes: Uint8Array
  readonly #isWhole: boolean

  /** @param isWhole whether these bytes are the complete body */
  constructor({ status, headers, whole }: AnswerHead, bytes: Uint8Array, isWhole: boolean) {
    this.status = status
    this.headers = new PlainHeaders(headers)
    this.whole = whole
    this.#bytes = bytes
    this.#isWhole = isWhole
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299
  }

  /** The bytes, followed by the end or an error. */
  get body(): ReadableStream<Bytes> {
    let isSent = this.#bytes.length === 0
    return new ReadableStream<Bytes>({
      pull: (controller) => {
        if (!isSent) controller.enqueue(copyBytes(this.#bytes))
        else if (this.#isWhole) controller.close()
        else controller.error(brokenOff())
        isSent = true
      },
    })
  }

  async text(): Promise<string> {
    return decoder.decode(this.#whole())
  }

  /** A copy, since the bytes may be part of a frame with other answers. */
  async arrayBuffer(): Promise<ArrayBuffer> {
    return copyBytes(this.#whole()).buffer
  }

  #whole(): Uint8Array {
    if (this.#isWhole) return this.#bytes
    throw brokenOff()
  }
}

function brokenOff(): Error {
  return new Error('the answer broke off')
}

/** Headers from a record; `isPlainValue` holds for each value. */
class PlainHeaders implements AnswerHeaders {
  readonly #byName: Readonly<Record<string, string>>

  constructor(byName: Readonly<Record<string, string>>) {
    this.#byName = byName
  }

  get(name: string): string | null {
    // As in `Headers`, white space around a value is not part of it.
    return this.has(name) ? (this.#byName[name]?.trim() ?? null) : null
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#byName, name)
  }
}
