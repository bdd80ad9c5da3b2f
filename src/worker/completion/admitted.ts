import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { ReceiptEndpoint } from '../../protocol/receipt.ts'
import type { Context } from '../context.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { IdempotentRequest } from '../idempotency/idempotent-request.ts'
import type { ChatPlan, PlannedAttempt } from '../routing/plan.ts'
import type { Admission } from '../settle/admit.ts'
import type { AnswerFormat } from './format.ts'
import type { ChatOptions } from './options.ts'
import { maxCompletionTokens, maxPromptTokens } from '../provider/estimate.ts'
import type { Route } from '../provider/route.ts'
import type { Exchange } from '../settle/exchange.ts'
import {
  billedUsage,
  countedPrompt,
  type BillingBound,
  type Produced,
} from '../stream/billed-usage.ts'
import type { UsageBound } from '../stream/cap-tokens.ts'

/** An admitted chat request, for streamed and other answers. */
export interface AdmittedChat {
  readonly context: Context
  readonly endpoint: ReceiptEndpoint
  readonly chat: ChatRequest
  readonly format: AnswerFormat
  /** Members that the endpoint's decoder dropped, whatever the route. */
  readonly dropped: readonly string[]
  readonly options: ChatOptions
  readonly plan: ChatPlan
  /** What the request and its key require of the provider. */
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
  readonly idempotent: IdempotentRequest | undefined
  /**
   * For a stream that begins while the daemon is still being checked: rejects when the daemon is not alive. Nothing may be
   * delivered before it resolves.
   */
  readonly daemonAlive: Promise<unknown> | undefined
  /** Aborts when the client disconnects. */
  readonly clientSignal: AbortSignal
}

/** The maximum usage of a request on a route: it is reserved, and nothing above it is billed. */
export function maxUsage(chat: ChatRequest, route: Route): UsageBound {
  return {
    promptTokens: maxPromptTokens(chat, route),
    completionTokens: maxCompletionTokens(chat, route),
  }
}

/** The limits of what a request is billed on a route. */
export function billingBound({ chat, promptEstimate }: AdmittedChat, route: Route): BillingBound {
  const { promptTokens, completionTokens } = maxUsage(chat, route)
  return { promptTokens, completionTokens, promptEstimate }
}

/**
 * The record of a chat exchange for settlement. Everything the provider produced is billed, even if the client disconnected
 * or hides reasoning: by the provider's counts, and for text after the last count by the router's own estimate, which is
 * logged. Usage above the request's maximum is not billed, and is logged too.
 */
export function chatExchange(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  produced: Produced,
): Exchange {
  const { context, plan, admission } = admitted
  const { usage, capped } = billedUsage(produced, billingBound(admitted, attempt.route))
  const facts = { request_id: context.requestId, route: attempt.route.id }
  if (countedPrompt(produced.usage) === undefined || produced.uncountedTextBytes > 0) {
    context.log('usage_estimated', facts)
  }
  if (capped) context.log('usage_capped', facts)
  return {
    requestId: context.requestId,
    admission,
    endpoint: admitted.endpoint,
    modality: 'chat',
    requestedRoute: plan.requestedRoute,
    route: attempt.route,
    failover: attempt.failover,
    constraints: admitted.constraints,
    usage,
    usageCapped: capped,
    billedSeconds: undefined,
    reportedSeconds: null,
  }
}
