import { releaseAdmission } from '../admission.ts'
import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { settleTools, wholeAttemptTools } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { jsonText } from '../http/reply.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import { attemptRoutes, type Served } from '../routing/attempt.ts'
import { Budget } from '../routing/budget.ts'
import { CHAT_VERDICTS } from '../routing/failure-mapping.ts'
import { serviceObject } from '../settle/service-object.ts'
import { settleWhole } from '../settle/settle-whole.ts'
import { answerHead } from './answer-head.ts'
import type { AdmittedChat } from './admitted.ts'
import { chatExchange } from './settling.ts'
import { askWhole, type WholeAnswer } from './whole-attempt.ts'

/**
 * Answers a request without streaming: attempts -> rebuilt answer -> settled -> body. If settling fails the
 * answer is withheld and costs nothing. A client that leaves changes nothing: the request runs to its end.
 */
export async function answerWhole(admitted: AdmittedChat): Promise<Response> {
  try {
    const answer = await served(admitted)
    const body = await settled(admitted, answer)
    const dropped = droppedMembersHeader(admitted, [answer.attempt.route])
    return jsonText(body, { ...admitted.headers, ...dropped })
  } catch (error) {
    await releaseAdmission(admitted.context, admitted.admission)
    throw error
  }
}

const outOfTime = () =>
  new ApiError('upstream_timeout', 'The request ran out of time before a provider answered.')

async function served(admitted: AdmittedChat): Promise<Served<WholeAnswer>> {
  const { context, plan, options } = admitted
  const budget = new Budget(context.now)
  budget.limit(options.timeoutMs, outOfTime)
  try {
    return await attemptRoutes(
      plan.attempts,
      (attempt, limitMs) => askWhole(admitted, attempt, limitMs, budget.signal),
      wholeAttemptTools(context, budget, CHAT_VERDICTS),
    )
  } finally {
    budget.end()
  }
}

async function settled(
  admitted: AdmittedChat,
  { attempt, value }: Served<WholeAnswer>,
): Promise<Bytes> {
  const { context, admission, receiptId } = admitted
  const { answer } = value
  const { tally, providerResponseId } = answer
  const { tokens: usage, uncountedTextBytes } = tally
  const exchange = chatExchange(admitted, attempt, { usage, uncountedTextBytes })
  const head = answerHead(admitted, attempt.route.id)
  const service = serviceObject(exchange, receiptId)
  const report = tally.report(exchange.usage)
  const body = utf8(admitted.format.encodeWhole(answer, head, report, service))
  const proof = {
    ...value,
    providerResponseId,
    clientRequest: admitted.clientRequest,
    clientResponse: body,
  }
  await settleWhole(exchange, receiptId, proof, settleTools(context, admission.customerId))
  return body
}
