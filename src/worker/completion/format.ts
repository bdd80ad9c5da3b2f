import type { Bytes } from '../../protocol/bytes.ts'
import type { ApiError } from '../http/errors.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { StreamEncoder } from '../stream/encoder.ts'
import type { ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import type { ReceiptEndpoint } from '../../protocol/receipt.ts'

/** What an answer says of itself, whatever its format. */
export interface AnswerHead {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The routed route. */
  readonly model: string
}

/** Writes one streamed answer, and the event that ends it where it fails. */
export interface AnswerEncoder extends StreamEncoder {
  /** The last events of a stream that broke, whether or not anything was sent before. */
  fail(error: ApiError): string
}

/** How the answer to one request is written. */
export interface AnswerFormat {
  /** Stands ahead of the request's id in the answer's own id. */
  readonly idPrefix: string
  streamEncoder(head: AnswerHead): AnswerEncoder
  /** The body of an answer that is not streamed. */
  encodeWhole(
    answer: ProviderAnswer,
    head: AnswerHead,
    usage: UsageReport | undefined,
    service: object,
  ): string
}

/** A request of one front door, decoded. */
export interface DecodedRequest {
  readonly chat: ChatRequest
  readonly format: AnswerFormat
  /** Members that have no meaning here; the answer names them in a header. */
  readonly dropped: readonly string[]
}

/** One front door of the chat models: what its requests become, and with them the form of their answers. */
export interface ChatApi {
  /** What receipts call it. */
  readonly endpoint: ReceiptEndpoint
  /** @throws ApiError naming the member at fault */
  readonly decode: (body: Bytes) => DecodedRequest
}
