import type { ChatRequest } from '../provider/chat-request.ts'
import {
  estimateCompletionTokens,
  maxCompletionTokens,
  maxPromptTokens,
} from '../provider/estimate.ts'
import type { Route } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { capTokens, type UsageBound } from '../settle/cap-tokens.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { AdmittedChat } from './admitted.ts'

/** The most that a request can use on a route: it is reserved, and nothing above it is billed. */
export function maxUsage(chat: ChatRequest, route: Route): UsageBound {
  return {
    promptTokens: maxPromptTokens(chat, route),
    completionTokens: maxCompletionTokens(chat, route),
  }
}

/** What a provider has produced, as far as it was received, whether or not it was delivered to the client. */
interface Produced {
  /** The provider's own count, if one was received. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text that this count does not cover, from which completion tokens are estimated. */
  readonly uncountedTextBytes: number
}

/**
 * The record of a chat exchange for settlement. Everything the provider produced is billed, even if the client
 * disconnected or hides reasoning: by the provider's counts, and for text after the last count by the router's own
 * estimate, which is logged. What exceeds the maximum usage of the request is not billed, and logged too.
 */
export function chatExchange(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  produced: Produced,
): Exchange {
  const { context, plan, admission } = admitted
  const { usage: counted, uncountedTextBytes } = produced
  const claimed = {
    promptTokens: counted?.promptTokens ?? admitted.promptEstimate,
    completionTokens:
      (counted?.completionTokens ?? 0) + estimateCompletionTokens(uncountedTextBytes),
    cachedTokens: counted?.cachedTokens ?? 0,
    cacheWriteTokens: counted?.cacheWriteTokens ?? 0,
  }
  const { usage, capped } = capTokens(claimed, maxUsage(admitted.chat, attempt.route))
  const facts = { request_id: context.requestId, route: attempt.route.id }
  if (counted === undefined || uncountedTextBytes > 0) context.log('usage_estimated', facts)
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
