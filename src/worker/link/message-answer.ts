import type { AnswerHead } from '../../protocol/link-messages.ts'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerHeaders, LinkAnswer } from './link-answer.ts'

/** As `Response.text` reads it: without a byte order mark, and with U+FFFD for what is no UTF-8. */
const decoder = new TextDecoder()

/**
 * An answer that came as a message, as it is: a `Response` with its headers costs the platform more than all else that the
 * worker does with a small answer of the daemon.
 */
export class MessageAnswer implements LinkAnswer {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly whole: unknown
  readonly #bytes: Uint8Array
  readonly #isWhole: boolean

  /** @param isWhole whether nothing is missing after these bytes */
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

  /** The bytes, and then the end or an error. */
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

  /** In memory of its own, since the bytes may be part of a frame with other answers. */
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

/** `isPlainValue` holds for each value. */
class PlainHeaders implements AnswerHeaders {
  readonly #byName: Readonly<Record<string, string>>

  constructor(byName: Readonly<Record<string, string>>) {
    this.#byName = byName
  }

  get(name: string): string | null {
    // As in `Headers`, spaces around a value are no part of it.
    return this.has(name) ? (this.#byName[name]?.trim() ?? null) : null
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#byName, name)
  }
}
