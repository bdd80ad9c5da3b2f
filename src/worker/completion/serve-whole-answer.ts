import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Steps } from '../json/steps.ts'
import { releaseAdmission } from '../admission.ts'
import { callDeps, readingTurn, settleDeps, wholeAttemptDeps, type Context } from '../context.ts'
import { ApiError, notToBeRepeated } from '../http/errors.ts'
import type { IdempotentRequest } from '../idempotency/idempotent-request.ts'
import { AnswerRoom } from '../provider/answer-room.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider, type ProviderCall, type ProviderReply } from '../provider/call.ts'
import { classifyResponse } from '../provider/failure.ts'
import { readAnswer } from '../provider/read-answer.ts'
import { readWholeBody } from '../provider/whole-body.ts'
import { attemptRoutes, type Served } from '../routing/attempt.ts'
import { Budget } from '../routing/budget.ts'
import { CHAT_FAILURE_MAPPING, type FailureMapping } from '../routing/failure-mapping.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Admission } from '../settle/admit.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { settleWholeAnswer, type WholeAnswerProof } from '../settle/settle-whole-answer.ts'
import { settleUnreceipted } from './settle-unreceipted.ts'
import { WholeProgress } from './whole-progress.ts'

/** An admitted request whose answer is not streamed. */
export interface WholeAnswerRequest {
  readonly context: Context
  readonly admission: Admission
  readonly receiptId: string | null
  readonly clientRequest: Bytes
  readonly idempotent: IdempotentRequest | undefined
  readonly attempts: readonly PlannedAttempt[]
  readonly timeoutMs: number
  /** Whether the client set `timeoutMs`, below the service's default. */
  readonly hurried: boolean
  /** Default: the mapping of the chat endpoints. */
  readonly failureMapping?: FailureMapping
  readonly outOfTime?: () => ApiError
}

/** The part of a receipt's proof that comes from a provider's bytes. */
export type ProviderProof = Omit<
  WholeAnswerProof,
  'clientRequest' | 'clientResponse' | 'providerResponseId'
>

/** An encoded answer before it is settled. */
export interface WrittenAnswer {
  readonly exchange: Exchange
  readonly body: Bytes
  /** The response with `body`. */
  readonly response: Response
  readonly providerResponseId: string | undefined
}

const chatOutOfTime = () =>
  new ApiError('upstream_timeout', 'The request ran out of time before a provider answered.')

/** The steps that differ between endpoints. */
export interface EndpointSteps<T extends ProviderProof> {
  /** One attempt on one route, within `limitMs` while other routes remain; rejects with an AttemptFailure. */
  readonly ask: (
    attempt: PlannedAttempt,
    limitMs: number | undefined,
    progress: WholeProgress,
  ) => Promise<T>
  readonly write: (served: Served<T>) => WrittenAnswer | Promise<WrittenAnswer>
  /** The record of an answer that the client does not get, of which `bytes` are billed. */
  readonly lost: (attempt: PlannedAttempt, bytes: number) => Exchange | Promise<Exchange>
}

/**
 * Serves a request that is not streamed: attempts -> encode -> settle. If settlement fails, the answer is withheld and costs
 * nothing. If the client disconnects, the request still runs to its end. If one of the router's limits, or the client's own
 * shorter time limit, keeps the answer from the client, the provider's work is billed without a receipt.
 * @throws ApiError when no route served it, or a limit was exceeded
 * @throws LinkUnavailable when the daemon does not answer, or the receipt could not be signed
 * @throws StorageUnavailable when the settlement could not be stored
 */
export async function serveWholeAnswer<T extends ProviderProof>(
  request: WholeAnswerRequest,
  steps: EndpointSteps<T>,
): Promise<Response> {
  const { context, admission, outOfTime = chatOutOfTime } = request
  const budget = new Budget(context.now, context.after, context.shutdown)
  budget.limit(request.timeoutMs, outOfTime)
  let progress: WholeProgress | undefined
  try {
    progress = new WholeProgress(budget, new AnswerRoom(context.takeMemory))
    return await serveAndSettle(request, steps, progress)
  } catch (error) {
    const work = progress?.lostWork(error, request.hurried)
    if (work === undefined) {
      await releaseAdmission(context, admission)
      throw error
    }
    await settleUnreceipted(request, await steps.lost(work.attempt, work.bytes))
    throw notToBeRepeated(error)
  } finally {
    budget.end()
  }
}

async function serveAndSettle<T extends ProviderProof>(
  { context, admission, receiptId, clientRequest, idempotent, ...request }: WholeAnswerRequest,
  { ask, write }: EndpointSteps<T>,
  progress: WholeProgress,
): Promise<Response> {
  const { attempts, failureMapping = CHAT_FAILURE_MAPPING } = request
  const attemptDeps = wholeAttemptDeps(context, progress.budget, failureMapping)
  const served = await attemptRoutes<T>(
    attempts,
    (attempt, limitMs) => progress.during(attempt, () => ask(attempt, limitMs, progress)),
    attemptDeps,
  )
  served.carried.end()
  const { exchange, body, response, providerResponseId } = await write(served)
  progress.answered()
  const answer = await idempotent?.seal({ headers: response.headers, body })
  const proof = { ...served.value, providerResponseId, clientRequest, clientResponse: body }
  const deps = settleDeps(context, admission.customerId)
  const kept = answer === undefined ? exchange : { ...exchange, answer }
  await settleWholeAnswer(kept, receiptId, proof, deps)
  return response
}

/** A provider's whole answer, or the client's answer where the daemon has written it. */
export interface WholeAnswerBytes {
  readonly reply: ProviderReply
  readonly bytes: Bytes
  /** The body that the provider was sent. */
  readonly sent: Bytes
}

type WholeAnswerCall = Pick<ProviderCall, 'route' | 'path' | 'constraints' | 'wholeAnswer'> & {
  readonly body: Bytes
}

/**
 * One attempt on one route without streaming. Providers send headers together with the finished answer, so only the
 * request's budget limits the attempt, and `limitMs` while other routes remain.
 * @param take converts the answer to what is served
 * @throws AttemptFailure when the provider failed
 * @throws ApiError when a limit of the router keeps the answer from being read
 */
export async function requestWholeAnswer<Taken>(
  context: Context,
  call: WholeAnswerCall,
  limitMs: number | undefined,
  { budget, room }: WholeProgress,
  take: (answer: WholeAnswerBytes) => Promise<Taken>,
): Promise<Taken> {
  const clock = new AttemptClock(budget, context.now, context.after)
  clock.enter(limitMs)
  try {
    const reply = await callProvider({
      ...call,
      contentType: 'application/json',
      accept: 'application/json',
      clock,
      ...callDeps(context),
      classify: classifyResponse,
    })
    return await take({ reply, bytes: await readWholeBody(reply, clock, room), sent: call.body })
  } finally {
    clock.stop()
  }
}

/** The request that an answer belongs to, and the parser for the answer. */
export interface AnswerReading<Answer> {
  readonly context: Context
  readonly customerId: string
  /** Throws BrokenStream on an answer that cannot be passed on. */
  readonly read: (answer: JsonObject) => Steps<Answer>
}

/** A parsed answer, with the digests for its receipt. */
export type ReadAnswer<Answer> = ProviderProof & { readonly answer: Answer }

/**
 * Parses a provider's answer.
 * @throws AttemptFailure when the answer is invalid
 * @throws ApiError when a limit of the router keeps it from being read
 */
export async function readWholeAnswer<Answer>(
  { reply, bytes, sent }: WholeAnswerBytes,
  { context, customerId, read }: AnswerReading<Answer>,
): Promise<ReadAnswer<Answer>> {
  return {
    answer: await readAnswer(bytes, readingTurn(context, customerId), read),
    requestDigest: await sha256Hex(sent),
    responseDigest: await sha256Hex(bytes),
    evidenceSha256: reply.evidenceSha256,
    decoded: reply.decoded,
  }
}
