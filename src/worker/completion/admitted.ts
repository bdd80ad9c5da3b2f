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

/** An admitted chat request, as the two ways of answering it take it. */
export interface AdmittedChat {
  readonly context: Context
  readonly endpoint: ReceiptEndpoint
  readonly chat: ChatRequest
  readonly format: AnswerFormat
  /** Members that the front door left out, whatever the route. */
  readonly dropped: readonly string[]
  readonly options: ChatOptions
  readonly plan: ChatPlan
  /** What the provider must meet, by the request and by its key. */
  readonly constraints: Constraints | undefined
  readonly admission: Admission
  /** Null where the client wants no receipt. */
  readonly receiptId: string | null
  /** Of the answer, however it is given. */
  readonly headers: Readonly<Record<string, string>>
  /** The router's own count of the prompt, billed only where no provider told one. */
  readonly promptEstimate: number
  /** Keeps one customer's prompts out of another's prefix cache, at providers that take a salt. */
  readonly cacheSalt: string | undefined
  /** The client's body bytes as received. */
  readonly clientRequest: Bytes
  /** Of a request with an `Idempotency-Key`. */
  readonly once: Once | undefined
  /** Aborts when the client is seen to leave. */
  readonly clientSignal: AbortSignal
}
