import { utf8 } from '../../protocol/bytes.ts'
import { admitRequest, attemptsAccepted, refuseUsedUp } from '../admission.ts'
import { readApiKey } from '../auth/authenticate.ts'
import { constraintsOf } from '../http/attestation-member.ts'
import { failoverOf } from '../completion/header-members.ts'
import { readChatBody, type ReadRequest } from '../completion/request-body.ts'
import { readChatOptions } from '../completion/options.ts'
import {
  readWholeAnswer,
  requestWholeAnswer,
  serveWholeAnswer,
  type ReadAnswer,
} from '../completion/serve-whole-answer.ts'
import type { Context, Handler } from '../context.ts'
import { readIdempotentRequest } from '../idempotency/idempotent-request.ts'
import { receiptHeader } from '../http/receipt-option.ts'
import { jsonText } from '../http/reply.ts'
import { printInParts } from '../json/print-in-parts.ts'
import { runWithPauses } from '../json/steps.ts'
import { pause } from '../routing/budget.ts'
import { EMBEDDING_FAILURE_MAPPING } from '../routing/failure-mapping.ts'
import { droppedNamesHeader, unusedHeaders } from '../provider/dropped-members.ts'
import { planEmbedding } from '../routing/plan-embedding.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import type { Route } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { capTokens, type UsageBound } from '../stream/cap-tokens.ts'
import type { Exchange } from '../settle/exchange.ts'
import { serviceObject } from '../stream/service-object.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { readEmbeddings, type EmbeddingsAnswer } from './answer.ts'
import { parseEmbeddingsRequest, type EmbeddingsRequest } from './request.ts'

type Embedded = ReadAnswer<EmbeddingsAnswer>

/**
 * POST /v1/embeddings: key -> body -> answer of an earlier request -> parse -> plan -> daemon alive -> admit -> answer.
 */
export const createEmbeddings: Handler = async (request, context) => {
  const key = await readApiKey(request, context)
  refuseUsedUp(request, context, key)
  const clientRequest = await readChatBody(request, context)
  const begun = await context.inTurn(costOfBytes(clientRequest.length), async (moreCost) => {
    const idempotent = await readIdempotentRequest(request, context, key, [clientRequest])
    const earlier = await idempotent?.earlierAnswer(request, moreCost)
    return earlier ?? admit(request, context, { key, clientRequest, idempotent })
  })
  if (begun instanceof Response) return begun
  const { parsed, options, requestedRoute, admission, attempts, constraints, idempotent } = begun
  const receiptId = options.receipt ? context.newId() : null
  const { timeoutMs, hurried } = options
  const { customerId } = key
  const read = (answer: JsonObject) => readEmbeddings(answer, parsed)
  const unused = unusedHeaders(request.headers, ['X-Service-Reasoning'])
  const headers = {
    ...admission.rateLimitHeaders,
    ...receiptHeader(receiptId),
    ...droppedNamesHeader([...parsed.dropped, ...unused]),
  }
  const terms = { admission, constraints, requestedRoute }
  return serveWholeAnswer<Embedded>(
    {
      context,
      admission,
      receiptId,
      clientRequest,
      idempotent,
      attempts,
      timeoutMs,
      hurried,
      failureMapping: EMBEDDING_FAILURE_MAPPING,
    },
    {
      ask: async ({ route }, limitMs, progress) => {
        const { upstream_model: model } = route.config
        const sent = utf8(JSON.stringify({ model, ...parsed.forwarded }))
        const call = { route, path: '/embeddings', body: sent, constraints }
        return requestWholeAnswer(context, call, limitMs, progress, (answer) =>
          readWholeAnswer(answer, { context, customerId, read }),
        )
      },
      write: async ({ attempt, value: { answer } }) => {
        const exchange = embeddingExchange(context, attempt, terms, answer.countedTokens, parsed)
        const service = serviceObject(exchange, receiptId)
        const whole = answerBody(answer, exchange, service)
        const body = await runWithPauses(printInParts(whole), () => pause(0))
        const response = jsonText(body, headers)
        return { exchange, body, response, providerResponseId: answer.providerResponseId }
      },
      lost: (attempt) => embeddingExchange(context, attempt, terms, undefined, parsed),
    },
  )
}

/** Parse -> plan -> daemon alive -> admit. */
async function admit(
  request: Request,
  context: Context,
  { key, clientRequest, idempotent }: ReadRequest,
) {
  const given = parseEmbeddingsRequest(clientRequest)
  const parsed = {
    ...given,
    failover: failoverOf(given.failover, request.headers),
    constraints: constraintsOf(given.constraints, request.headers),
  }
  const options = readChatOptions(request.headers, false)
  const at = context.now()
  const order = (routes: Parameters<typeof context.health.prefer>[0]) =>
    context.health.prefer(routes, at)
  const plan = planEmbedding(context.catalogue, parsed, { order })
  const planned = context.health.openCircuitsLast(plan.attempts, at, context.owner)
  await (options.receipt ? context.link.state() : context.link.stateReadAfter(at))

  const acceptable = await attemptsAccepted(context, parsed.constraints, planned)
  const admitted = await admitRequest(context, key, {
    attempts: acceptable,
    constraints: parsed.constraints,
    maxUsageOn: (route) => maxUsage(parsed, route),
    maxDelayMs: options.timeoutMs,
    idempotent,
  })
  return { parsed, options, requestedRoute: plan.requestedRoute, ...admitted, idempotent }
}

/** Tokens that tokenizers add to each input. */
const TOKENS_AROUND_INPUT = 8

/** The most that a request can use on a route. */
function maxUsage(
  { inputs, textBytes, tokenIds }: EmbeddingsRequest,
  { config }: Route,
): UsageBound {
  const ofText = Math.ceil(textBytes * config.input_bound.tokens_per_byte)
  return { promptTokens: ofText + tokenIds + TOKENS_AROUND_INPUT * inputs, completionTokens: 0 }
}

/** The record for settlement: the provider's count of the prompt, or the router's own estimate, which is logged. */
function embeddingExchange(
  context: Context,
  { route, failover }: PlannedAttempt,
  terms: Pick<Exchange, 'admission' | 'constraints' | 'requestedRoute'>,
  countedTokens: number | undefined,
  parsed: EmbeddingsRequest,
): Exchange {
  const { requestId } = context
  const claimed = {
    promptTokens: countedTokens ?? parsed.promptEstimate,
    completionTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
  }
  const { usage, capped } = capTokens(claimed, maxUsage(parsed, route))
  const facts = { request_id: requestId, route: route.id }
  if (countedTokens === undefined) context.log('usage_estimated', facts)
  if (capped) context.log('usage_capped', facts)
  return {
    requestId,
    ...terms,
    endpoint: '/v1/embeddings',
    modality: 'embedding',
    route,
    failover,
    usage,
    usageCapped: capped,
    billedSeconds: undefined,
    reportedSeconds: null,
  }
}

function answerBody({ vectors }: EmbeddingsAnswer, exchange: Exchange, service: object): object {
  const { promptTokens } = exchange.usage
  return {
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model: exchange.route.id,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    service,
  }
}
