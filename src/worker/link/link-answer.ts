/** What this project uses of a response of the daemon: all of it in a `Response`, and in an answer that came as a message. */
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
