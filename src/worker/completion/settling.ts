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

/**
 * The record of a chat exchange for settlement. The provider's counts win; where it gave none, or had counted
 * no output yet although some was delivered, the router's own estimate stands in, and that is logged.
 */
export function chatExchange(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  delivered: Delivered,
): Exchange {
  const { context, plan, admission } = admitted
  const usage = countedUsage(delivered) ?? estimatedUsage(admitted, delivered)
  if (usage !== delivered.usage) {
    context.log('usage_estimated', { request_id: context.requestId, route: attempt.route.id })
  }
  return {
    requestId: context.requestId,
    admission,
    modality: 'chat',
    requestedRoute: plan.requestedRoute,
    route: attempt.route,
    failover: attempt.failover,
    usage,
    billedSeconds: undefined,
    reportedSeconds: null,
  }
}

function countedUsage({ usage, deliveredTextBytes }: Delivered): TokenUsage | undefined {
  return usage && (usage.completionTokens > 0 || deliveredTextBytes === 0) ? usage : undefined
}

function estimatedUsage(admitted: AdmittedChat, delivered: Delivered): TokenUsage {
  const { usage, deliveredTextBytes } = delivered
  return {
    promptTokens: usage?.promptTokens ?? admitted.promptEstimate,
    completionTokens: estimateCompletionTokens(deliveredTextBytes),
    cachedTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
  }
}
