import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { ReceiptEndpoint } from '../../protocol/receipt.ts'
import type { Context } from '../context.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { Once } from '../idempotency/once.ts'
import type { ChatPlan } from '../routing/plan.ts'
import type { Admission } from '../settle/admit.ts'
import type { AnswerFormat } from './format.ts'
import type { ChatOptions } from './options.ts'

/** An admitted chat request, as the streamed and the unstreamed answer need it. */
export interface AdmittedChat {
  readonly context: Context
  readonly endpoint: ReceiptEndpoint
  readonly chat: ChatRequest
  readonly format: AnswerFormat
  /** Members that the endpoint's decoder dropped, whatever the route. */
  readonly dropped: readonly string[]
  readonly options: ChatOptions
  readonly plan: ChatPlan
  /** What the provider must meet, by the request and by its key. */
  readonly constraints: Constraints | undefined
  readonly admission: Admission
  /** Null where the client wants no receipt. */
  readonly receiptId: string | null
  /** Headers of the answer, streamed or not. */
  readonly headers: Readonly<Record<string, string>>
  /** The router's own estimate of the prompt, billed only where no provider reports a count. */
  readonly promptEstimate: number
  /** Separates customers in the prefix caches of providers that accept a salt. */
  readonly cacheSalt: string | undefined
  /** The client's body bytes as received. */
  readonly clientRequest: Bytes
  /** Of a request with an `Idempotency-Key`. */
  readonly once: Once | undefined
  /** Aborts when the client disconnects. */
  readonly clientSignal: AbortSignal
}
