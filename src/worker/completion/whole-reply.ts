import type { Bytes } from '../../protocol/bytes.ts'
import { SMALL_BODY_BYTES } from '../../protocol/link-messages.ts'
import type { WholeAnswerRecord } from '../../protocol/whole-answer.ts'
import { jsonText } from '../http/reply.ts'
import { printInParts } from '../json/print-in-parts.ts'
import { runWithPauses } from '../json/steps.ts'
import type { IncludedReceipt } from '../link/link.ts'
import type { ProviderReply } from '../provider/call.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import { textBytesIn } from '../provider/estimate.ts'
import { pause } from '../routing/budget.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { readProviderAnswer, type ProviderAnswer } from '../stream/provider-answer.ts'
import { serviceObject } from '../stream/service-object.ts'
import { UsageTally } from '../stream/usage-tally.ts'
import { chatExchange, type AdmittedChat } from './admitted.ts'
import { answerHead, answerId } from './answer-head.ts'
import { wholeAnswerSpec } from './whole-answer-spec.ts'
import type { WholeProgress } from './whole-progress.ts'
import {
  readWholeAnswer,
  requestWholeAnswer,
  serveWholeAnswer,
  type ProviderProof,
  type ReadAnswer,
  type WrittenAnswer,
} from './serve-whole-answer.ts'

/** A client's answer that the daemon has written, with its record. */
interface DaemonsAnswer extends ProviderProof {
  readonly body: Bytes
  readonly record: WholeAnswerRecord
}

type WholeAnswer = ReadAnswer<ProviderAnswer> | DaemonsAnswer

/** Answers a request that is not streamed. */
export function sendWholeAnswer(admitted: AdmittedChat): Promise<Response> {
  const { chat, plan, options } = admitted
  return serveWholeAnswer<WholeAnswer>(
    { ...admitted, ...options, attempts: plan.attempts },
    {
      ask: (attempt, limitMs, progress) => ask(admitted, attempt, limitMs, progress),
      write: ({ attempt, value }) =>
        'record' in value
          ? writtenByDaemon(admitted, attempt, value)
          : written(admitted, attempt, value.answer),
      lost: (attempt, bytes) => {
        const uncountedTextBytes = textBytesIn(chat, bytes)
        return chatExchange(admitted, attempt, { usage: undefined, uncountedTextBytes })
      },
    },
  )
}

async function ask(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  limitMs: number | undefined,
  progress: WholeProgress,
): Promise<WholeAnswer> {
  const { context, chat, constraints } = admitted
  const { route, effort } = attempt
  const included = context.link.includedReceipt(route.provider.name)
  const body = buildChatBody(chat, route, effort, admitted.cacheSalt)
  const wholeAnswer = isSmall(body) ? await wholeAnswerSpec(admitted, attempt, included) : undefined
  const call = { route, path: '/chat/completions', body, constraints, wholeAnswer }
  return requestWholeAnswer<WholeAnswer>(context, call, limitMs, progress, async (answer) => {
    const { reply, bytes } = answer
    if (reply.whole !== undefined) return daemonsAnswer(reply, reply.whole, bytes, included)
    const readOptions = { id: answerId(admitted), includeReasoning: chat.includeReasoning }
    const read = (object: JsonObject) => readProviderAnswer(object, readOptions)
    const { customerId } = admitted.admission
    return readWholeAnswer(answer, { context, customerId, read })
  })
}

/** Whether the call with this body fits into a message; only then an answer can be requested of the daemon. */
function isSmall({ length }: Bytes): boolean {
  return length <= SMALL_BODY_BYTES
}

function daemonsAnswer(
  { evidenceSha256, decoded }: ProviderReply,
  record: WholeAnswerRecord,
  body: Bytes,
  included: IncludedReceipt,
): DaemonsAnswer {
  return {
    body,
    record,
    requestDigest: record.request_sha256,
    responseDigest: record.response_sha256,
    evidenceSha256,
    decoded,
    signed: record.signed === null ? undefined : included.take(record.signed),
  }
}

function writtenByDaemon(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  { body, record }: DaemonsAnswer,
): WrittenAnswer {
  const { produced } = UsageTally.of(record.counts)
  const exchange = chatExchange(admitted, attempt, produced)
  const response = jsonText(body, headersOf(admitted, attempt))
  const providerResponseId = record.provider_response_id ?? undefined
  return { exchange, body, response, providerResponseId }
}

async function written(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  answer: ProviderAnswer,
): Promise<WrittenAnswer> {
  const { tally, providerResponseId } = answer
  const exchange = chatExchange(admitted, attempt, tally.produced)
  const head = answerHead(admitted, attempt.route.id)
  const service = serviceObject(exchange, admitted.receiptId)
  const report = tally.report(exchange.usage)
  const whole = admitted.format.wholeBody(answer, head, report, service)
  const body = await runWithPauses(printInParts(whole), () => pause(0))
  return {
    exchange,
    body,
    response: jsonText(body, headersOf(admitted, attempt)),
    providerResponseId,
  }
}

function headersOf(admitted: AdmittedChat, { route }: PlannedAttempt): Record<string, string> {
  return { ...admitted.headers, ...droppedMembersHeader(admitted, [route]) }
}
