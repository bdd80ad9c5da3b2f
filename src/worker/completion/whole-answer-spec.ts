import { sha256Hex } from '../../protocol/digest.ts'
import type { WholeAnswerSpec } from '../../protocol/whole-answer.ts'
import type { IncludedReceipt } from '../link/link.ts'
import { isCarried, type Route } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { billsTokens } from '../settle/exchange.ts'
import { billingLimits } from '../stream/billing-limits.ts'
import { billingBound, type AdmittedChat } from './admitted.ts'
import { answerId } from './answer-head.ts'

/** What lets the daemon write the answer to this attempt; undefined where the daemon cannot. */
export async function wholeAnswerSpec(
  admitted: AdmittedChat,
  { route, failover }: PlannedAttempt,
  included: IncludedReceipt,
): Promise<WholeAnswerSpec | undefined> {
  const format = isCarried(route) ? admitted.format.wholeFormat() : undefined
  if (format === undefined) return undefined
  return {
    id: answerId(admitted),
    requested_route: admitted.plan.requestedRoute,
    routed_model: route.id,
    failover,
    format,
    include_reasoning: admitted.chat.includeReasoning,
    billing: billingLimits(billingBound(admitted, route)),
    receipt: await receiptSpec(admitted, route, included),
  }
}

async function receiptSpec(
  { receiptId, endpoint, clientRequest, constraints, context }: AdmittedChat,
  route: Route,
  { knownHead }: IncludedReceipt,
): Promise<WholeAnswerSpec['receipt']> {
  if (receiptId === null) return null
  return {
    jti: receiptId,
    endpoint,
    client_request_digest: await sha256Hex(clientRequest),
    ...(constraints && { constraints }),
    bills_tokens: billsTokens(route),
    configuration_sha256: context.configurationSha256,
    ...(knownHead !== undefined && { known_head: knownHead }),
  }
}
