/**
 * The part of a daemon's response that this project uses; a `Response` has all of it, and so has an answer that came as a
 * message.
 */
export interface LinkAnswer {
  readonly status: number
  readonly ok: boolean
  readonly headers: AnswerHeaders
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null
  text(): Promise<string>
  arrayBuffer(): Promise<ArrayBuffer>
  /** `AnswerHead.whole` of a message. */
  readonly whole?: unknown
}

/** Headers of an answer, by their names in lower case. */
export type AnswerHeaders = Pick<Headers, 'get' | 'has'>
