import type { Bytes } from '../../protocol/bytes.ts'
import type { ApiError } from '../http/errors.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import type { ChunkWriter, LastEvent } from '../stream/encoder.ts'
import type { TakeMemory } from '../stream/event-framer.ts'
import type { ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import type { ReceiptEndpoint } from '../../protocol/receipt.ts'
import type { AnswerTail, ChunkFormat } from '../../protocol/stream-record.ts'
import type { WholeAnswerFormat } from '../../protocol/whole-answer.ts'

/** Writes the last event of a stream, including one that failed. */
export interface LastEvents extends LastEvent {
  /**
   * The last events of a stream that failed, whether or not anything was sent before.
   * @param tail undefined where something was sent, and only the daemon knew what
   */
  fail(tail: AnswerTail | undefined, error: ApiError): string
}

/** A format as it is described to the daemon. */
export interface StreamFormat {
  readonly format: ChunkFormat
  /** Data for the daemon that is sent in front of the provider's request. */
  readonly preamble?: Bytes
}

/** How the answer to one request is written. */
export interface AnswerFormat {
  /** Precedes the request's id in the answer's own id. */
  readonly idPrefix: string
  /** Memory for the parts of the request that the answer repeats, bytes; default: 0. */
  readonly echoBytes?: number
  /** Writes the events of a stream in this program; `takeMemory` reserves memory for text that is held. */
  chunkWriter(head: AnswerHead, takeMemory?: TakeMemory): ChunkWriter
  /** What lets the daemon write the same events; undefined where it cannot. */
  chunkFormat(head: AnswerHead): StreamFormat | undefined
  /** What lets the daemon write the body of an answer that is not streamed; undefined where it cannot. */
  wholeFormat(): WholeAnswerFormat | undefined
  lastEvents(head: AnswerHead): LastEvents
  /** The body of an answer that is not streamed, to be serialised as JSON. */
  wholeBody(
    answer: ProviderAnswer,
    head: AnswerHead,
    usage: UsageReport | undefined,
    service: object,
  ): object
}

/** A decoded request of one API format. */
export interface DecodedRequest {
  readonly chat: ChatRequest
  readonly format: AnswerFormat
  /** Members without meaning here; a header of the answer names them. */
  readonly dropped: readonly string[]
}

/**
 * One API format of the chat models: the decoder of its requests, which also determines the format of their answers.
 */
export interface ChatApi {
  /** The endpoint's name in receipts. */
  readonly endpoint: ReceiptEndpoint
  /** @throws ApiError naming the member at fault */
  readonly decode: (body: Bytes) => DecodedRequest
}
