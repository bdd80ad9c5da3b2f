import { estimateCompletionTokens } from '../provider/estimate.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { AdmittedChat } from './admitted.ts'

/** What a provider has produced, as far as it was received: delivered to the client or not. */
interface Produced {
  /** The provider's own count, where one came. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text that this count does not cover, from which completion tokens are estimated. */
  readonly uncountedTextBytes: number
}

/**
 * The record of a chat exchange for settlement. What the provider produced is billed, whether the client took it,
 * asked not to see it or left before: the provider's counts, and the router's own estimate, which is logged, of what
 * came after them.
 */
export function chatExchange(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  produced: Produced,
): Exchange {
  const { context, plan, admission } = admitted
  const { usage, uncountedTextBytes } = produced
  if (usage === undefined || uncountedTextBytes > 0) {
    context.log('usage_estimated', { request_id: context.requestId, route: attempt.route.id })
  }
  return {
    requestId: context.requestId,
    admission,
    endpoint: admitted.endpoint,
    modality: 'chat',
    requestedRoute: plan.requestedRoute,
    route: attempt.route,
    failover: attempt.failover,
    usage: {
      promptTokens: usage?.promptTokens ?? admitted.promptEstimate,
      completionTokens:
        (usage?.completionTokens ?? 0) + estimateCompletionTokens(uncountedTextBytes),
      cachedTokens: usage?.cachedTokens ?? 0,
      cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
    },
    billedSeconds: undefined,
    reportedSeconds: null,
  }
}
