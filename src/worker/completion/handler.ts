import { admitRequest, attemptsAccepted, refuseUsedUp } from '../admission.ts'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Context, Handler } from '../context.ts'
import { readApiKey } from '../auth/authenticate.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import { estimatePromptTokens } from '../provider/estimate.ts'
import { planChat, type ChatPlan, type PlannedAttempt } from '../routing/plan.ts'
import { receiptHeader } from '../http/receipt-option.ts'
import { readIdempotentRequest } from '../idempotency/idempotent-request.ts'
import { maxUsage, type AdmittedChat } from './admitted.ts'
import { askDaemon } from './ask-daemon.ts'
import type { AnswerFormat, ChatApi } from './format.ts'
import { withHeaderMembers } from './header-members.ts'
import { checkOcrRequest } from './ocr-rules.ts'
import { readChatOptions } from './options.ts'
import { checkReasoningMembers } from './reasoning-members.ts'
import { readChatBody, type ReadRequest } from './request-body.ts'
import { answerStream } from './stream-reply.ts'
import { sendWholeAnswer } from './whole-reply.ts'

/**
 * The handler of one API format of the chat models: key -> body -> answer of an earlier request -> decode -> options ->
 * plan -> daemon alive -> admit -> answer. Everything that can be refused is refused before the reservation; everything
 * after it settles or releases.
 */
export function serveCompletions(api: ChatApi): Handler {
  return async (request, context) => {
    const key = await readApiKey(request, context)
    refuseUsedUp(request, context, key)
    const clientRequest = await readChatBody(request, context)
    const begun = await context.inTurn(costOfBytes(clientRequest.length), async (moreCost) => {
      const idempotent = await readIdempotentRequest(request, context, key, [clientRequest])
      const earlier = await idempotent?.earlierAnswer(request, moreCost)
      return earlier ?? (await admit(request, context, api, { key, clientRequest, idempotent }))
    })
    if (begun instanceof Response) return begun
    return await (begun.chat.stream ? answerStream(begun) : sendWholeAnswer(begun))
  }
}

/** Decode -> options -> plan -> daemon alive -> admit. */
async function admit(
  request: Request,
  context: Context,
  api: ChatApi,
  { key, clientRequest, idempotent }: ReadRequest,
): Promise<AdmittedChat> {
  const { chat: decoded, format, dropped } = api.decode(clientRequest)
  const held = heldBesides(clientRequest, decoded, format)
  if (held > 0) context.takeMemory(held)
  const chat = withHeaderMembers(decoded, request.headers)
  const options = readChatOptions(request.headers, chat.stream)
  const plan = planByHealth(context, chat)
  if (plan.ocr) checkOcrRequest(chat)
  else checkReasoningMembers(chat)
  const { daemonAlive } = await askDaemon(context, plan, {
    isStream: chat.stream,
    hasReceipt: options.receipt,
  })

  const acceptable = await attemptsAccepted(context, chat.constraints, plan.attempts)
  const { service } = context.config
  const { stream_open_ms: openMs, stream_ms: streamMs } = service.timeouts
  const cacheSalt = acceptable.some(takesSalt)
    ? await context.keyring.cacheSalt(key.customerId)
    : undefined
  const { admission, attempts, constraints } = await admitRequest(context, key, {
    attempts: acceptable,
    constraints: chat.constraints,
    maxUsageOn: (route) => maxUsage(chat, route),
    maxDelayMs: chat.stream ? openMs + streamMs : options.timeoutMs,
    idempotent,
  })
  const receiptId = options.receipt ? context.newId() : null
  return {
    context,
    endpoint: api.endpoint,
    chat,
    format,
    dropped,
    options,
    plan: { ...plan, attempts },
    constraints,
    admission,
    receiptId,
    headers: {
      ...admission.rateLimitHeaders,
      ...receiptHeader(receiptId),
    },
    promptEstimate: estimatePromptTokens(chat),
    cacheSalt,
    clientRequest,
    idempotent,
    daemonAlive,
    clientSignal: request.signal,
  }
}

/** Bytes that a request holds in addition to its body: the body that it was translated to, and what its answer repeats. */
function heldBesides(
  clientRequest: Bytes,
  { bytes }: ChatRequest,
  { echoBytes = 0 }: AnswerFormat,
): number {
  return echoBytes + (bytes === clientRequest ? 0 : bytes.length)
}

const takesSalt = ({ route }: PlannedAttempt) => route.config.cache_salt_field !== undefined

/** Plans the request. Routes whose circuit is open are moved to the end, even behind the client's failover models. */
function planByHealth({ catalogue, health, now, owner }: Context, chat: ChatRequest): ChatPlan {
  const at = now()
  const plan = planChat(catalogue, chat, { order: (routes) => health.prefer(routes, at) })
  return { ...plan, attempts: health.openCircuitsLast(plan.attempts, at, owner) }
}
