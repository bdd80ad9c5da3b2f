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
import type { WholeFormat } from '../../protocol/whole-order.ts'

/** Writes the last event of a stream, also of one that failed. */
export interface LastEvents extends LastEvent {
  /**
   * The last events of a stream that failed, whether or not anything was sent before. The tail is undefined where
   * something was, and only the daemon knew what.
   */
  fail(tail: AnswerTail | undefined, error: ApiError): string
}

/** A format as the daemon is told it. */
export interface OrderedFormat {
  readonly format: ChunkFormat
  /** For the daemon, ahead of the provider's request. */
  readonly ahead?: Bytes
}

/** How the answer to one request is written. */
export interface AnswerFormat {
  /** Precedes the request's id in the answer's own id. */
  readonly idPrefix: string
  /** Memory for what the answer repeats of the request, bytes; 0 unless given. */
  readonly echoBytes?: number
  /** Writes the events of a stream here; memory is taken for text that is held. */
  chunkWriter(head: AnswerHead, takeMemory?: TakeMemory): ChunkWriter
  /** Lets the daemon write the same events; undefined where it is not to. */
  chunkFormat(head: AnswerHead): OrderedFormat | undefined
  /** Lets the daemon write the body of an answer that is not streamed; undefined where it is not to. */
  wholeFormat(): WholeFormat | undefined
  lastEvents(head: AnswerHead): LastEvents
  /** The body of an answer that is not streamed, to be written as JSON. */
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
  /** Members that have no meaning here; a header of the answer names them. */
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
