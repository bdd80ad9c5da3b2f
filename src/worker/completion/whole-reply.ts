import { jsonText } from '../http/reply.ts'
import { printInParts } from '../json/print-in-parts.ts'
import { runWithPauses } from '../json/steps.ts'
import { pause } from '../routing/budget.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import { textBytesIn } from '../provider/estimate.ts'
import type { Served } from '../routing/attempt.ts'
import { serviceObject } from '../stream/service-object.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { readProviderAnswer, type ProviderAnswer } from '../stream/provider-answer.ts'
import { chatExchange, type AdmittedChat } from './admitted.ts'
import { answerHead, answerId } from './answer-head.ts'
import { requestWhole, serveWhole, type ReadAnswer, type WrittenAnswer } from './whole-serving.ts'

type WholeAnswer = ReadAnswer<ProviderAnswer>

/** Answers a request that is not streamed. */
export function answerWhole(admitted: AdmittedChat): Promise<Response> {
  const { context, chat, plan, options } = admitted
  const { customerId } = admitted.admission
  const { includeReasoning } = admitted.chat
  const readOptions = { id: answerId(admitted), includeReasoning }
  const read = (answer: JsonObject) => readProviderAnswer(answer, readOptions)
  return serveWhole<WholeAnswer>(
    { ...admitted, ...options, attempts: plan.attempts },
    {
      ask: ({ route: planned, effort }, limitMs, progress) => {
        const request = buildChatBody(chat, planned, effort, admitted.cacheSalt)
        const { constraints } = admitted
        const call = { route: planned, path: '/chat/completions', body: request, constraints }
        return requestWhole({ context, customerId, read }, call, limitMs, progress)
      },
      write: (served) => written(admitted, served),
      lost: (attempt, bytes) => {
        const uncountedTextBytes = textBytesIn(chat, bytes)
        return chatExchange(admitted, attempt, { usage: undefined, uncountedTextBytes })
      },
    },
  )
}

async function written(
  admitted: AdmittedChat,
  { attempt, value: { answer } }: Served<WholeAnswer>,
): Promise<WrittenAnswer> {
  const { tally, providerResponseId } = answer
  const { tokens: usage, uncountedTextBytes } = tally
  const exchange = chatExchange(admitted, attempt, { usage, uncountedTextBytes })
  const head = answerHead(admitted, attempt.route.id)
  const service = serviceObject(exchange, admitted.receiptId)
  const report = tally.report(exchange.usage)
  const whole = admitted.format.wholeBody(answer, head, report, service)
  const body = await runWithPauses(printInParts(whole), () => pause(0))
  const headers = { ...admitted.headers, ...droppedMembersHeader(admitted, [attempt.route]) }
  return { exchange, body, response: jsonText(body, headers), providerResponseId }
}
