import { sha256Hex } from '../../protocol/digest.ts'
import type { WholeOrder } from '../../protocol/whole-order.ts'
import type { ReceiptBeside } from '../link/link.ts'
import { isCarried, type Route } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { billsTokens } from '../settle/exchange.ts'
import { orderedBilling } from '../stream/ordered-billing.ts'
import { billingBound, type AdmittedChat } from './admitted.ts'
import { answerId } from './answer-head.ts'

/** The order that lets the daemon write the answer to this attempt; undefined where the daemon cannot. */
export async function orderWhole(
  admitted: AdmittedChat,
  { route, failover }: PlannedAttempt,
  beside: ReceiptBeside,
): Promise<WholeOrder | undefined> {
  const format = isCarried(route) ? admitted.format.wholeFormat() : undefined
  if (format === undefined) return undefined
  return {
    id: answerId(admitted),
    requested_route: admitted.plan.requestedRoute,
    routed_model: route.id,
    failover,
    format,
    include_reasoning: admitted.chat.includeReasoning,
    billing: orderedBilling(billingBound(admitted, route)),
    receipt: await orderedReceipt(admitted, route, beside),
  }
}

async function orderedReceipt(
  { receiptId, endpoint, clientRequest, constraints, context }: AdmittedChat,
  route: Route,
  { knownHead }: ReceiptBeside,
): Promise<WholeOrder['receipt']> {
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
