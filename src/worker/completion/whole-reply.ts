import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { jsonText } from '../http/reply.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import type { Served } from '../routing/attempt.ts'
import { serviceObject } from '../settle/service-object.ts'
import { readProviderAnswer, type ProviderAnswer } from '../stream/provider-answer.ts'
import { chatExchange, type AdmittedChat } from './admitted.ts'
import { answerHead, answerId } from './answer-head.ts'
import { requestWhole, serveWhole, type ReadAnswer, type WrittenAnswer } from './whole-serving.ts'

type WholeAnswer = ReadAnswer<ProviderAnswer>

/** Answers a request that is not streamed. */
export function answerWhole(admitted: AdmittedChat): Promise<Response> {
  const { context, chat, plan, options } = admitted
  const { customerId } = admitted.admission
  const read = (bytes: Bytes) => readAnswer(bytes, admitted)
  return serveWhole<WholeAnswer>(
    { ...admitted, attempts: plan.attempts, timeoutMs: options.timeoutMs },
    async ({ route: planned, effort }, limitMs, budget) => {
      const request = buildChatBody(chat, planned, effort, admitted.cacheSalt)
      const { constraints } = admitted
      const call = { route: planned, path: '/chat/completions', body: request, constraints }
      return requestWhole({ context, customerId, read }, call, limitMs, budget)
    },
    (served) => written(admitted, served),
  )
}

function readAnswer(bytes: Bytes, admitted: AdmittedChat): ProviderAnswer {
  try {
    const { includeReasoning } = admitted.chat
    return readProviderAnswer(bytes, { id: answerId(admitted), includeReasoning })
  } catch (error) {
    throw toAttemptFailure(error)
  }
}

function written(
  admitted: AdmittedChat,
  { attempt, value: { answer } }: Served<WholeAnswer>,
): WrittenAnswer {
  const { tally, providerResponseId } = answer
  const { tokens: usage, uncountedTextBytes } = tally
  const exchange = chatExchange(admitted, attempt, { usage, uncountedTextBytes })
  const head = answerHead(admitted, attempt.route.id)
  const service = serviceObject(exchange, admitted.receiptId)
  const report = tally.report(exchange.usage)
  const body = utf8(admitted.format.encodeWhole(answer, head, report, service))
  const headers = { ...admitted.headers, ...droppedMembersHeader(admitted, [attempt.route]) }
  return { exchange, body, response: jsonText(body, headers), providerResponseId }
}
