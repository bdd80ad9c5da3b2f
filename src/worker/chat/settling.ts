import { estimateCompletionTokens } from '../provider/estimate.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { AdmittedChat } from './admitted.ts'

/** What a chat exchange is billed by, however it ended. */
interface Delivered {
  /** The provider's own count, where one came. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text delivered, from which completion tokens are estimated otherwise. */
  readonly deliveredTextBytes: number
}

/** The record of a chat exchange for settlement. The provider's count wins; without one the estimate is logged. */
export function chatExchange(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  delivered: Delivered,
): Exchange {
  const { context, plan, admission } = admitted
  if (!delivered.usage) {
    context.log('usage_estimated', { request_id: context.requestId, route: attempt.route.id })
  }
  return {
    requestId: context.requestId,
    admission,
    modality: 'chat',
    requestedRoute: plan.requestedRoute,
    route: attempt.route,
    failover: attempt.failover,
    usage: delivered.usage ?? estimatedUsage(admitted, delivered.deliveredTextBytes),
    billedSeconds: undefined,
    reportedSeconds: null,
  }
}

function estimatedUsage(admitted: AdmittedChat, deliveredTextBytes: number): TokenUsage {
  return {
    promptTokens: admitted.promptEstimate,
    completionTokens: estimateCompletionTokens(deliveredTextBytes),
    cachedTokens: 0,
    cacheWriteTokens: 0,
  }
}
