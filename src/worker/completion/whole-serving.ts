import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Steps } from '../json/steps.ts'
import { releaseAdmission } from '../admission.ts'
import { callDeps, readingTurn, settleDeps, wholeAttemptDeps, type Context } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import type { Once } from '../idempotency/once.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider, type ProviderCall } from '../provider/call.ts'
import { classifyResponse } from '../provider/failure.ts'
import { readAnswer } from '../provider/read-answer.ts'
import { readWholeBody } from '../provider/whole-body.ts'
import { attemptRoutes, type AttemptFn, type Served } from '../routing/attempt.ts'
import { Budget } from '../routing/budget.ts'
import { CHAT_FAILURE_MAPPING, type FailureMapping } from '../routing/failure-mapping.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Admission } from '../settle/admit.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { settleWhole, type WholeProof } from '../settle/settle-whole.ts'

/** An admitted request whose answer is not streamed. */
export interface WholeRequest {
  readonly context: Context
  readonly admission: Admission
  readonly receiptId: string | null
  readonly clientRequest: Bytes
  readonly once: Once | undefined
  readonly attempts: readonly PlannedAttempt[]
  readonly timeoutMs: number
  /** The chat endpoints' mapping unless given. */
  readonly failureMapping?: FailureMapping
  readonly outOfTime?: () => ApiError
}

/** The part of a receipt's proof that comes from a provider's bytes. */
export type ProviderProof = Omit<
  WholeProof,
  'clientRequest' | 'clientResponse' | 'providerResponseId'
>

/** An encoded answer before it is settled. */
export interface WrittenAnswer {
  readonly exchange: Exchange
  readonly body: Bytes
  /** The answer that carries `body`. */
  readonly response: Response
  readonly providerResponseId: string | undefined
}

const chatOutOfTime = () =>
  new ApiError('upstream_timeout', 'The request ran out of time before a provider answered.')

/**
 * Serves a request that is not streamed: attempts -> encode -> settle. If settlement fails, the answer is withheld and
 * costs nothing. If the client disconnects, the request still runs to its end.
 * @throws ApiError when no route served it
 * @throws LinkUnavailable
 * @throws StorageUnavailable
 */
export async function serveWhole<T extends ProviderProof>(
  request: WholeRequest,
  runAttempt: (...of: [...Parameters<AttemptFn<T>>, budget: Budget]) => Promise<T>,
  write: (served: Served<T>) => WrittenAnswer | Promise<WrittenAnswer>,
): Promise<Response> {
  const { context, admission, receiptId, clientRequest, once, attempts } = request
  const { failureMapping = CHAT_FAILURE_MAPPING, outOfTime = chatOutOfTime } = request
  const budget = new Budget(context.now, context.after)
  budget.limit(request.timeoutMs, outOfTime)
  try {
    const attemptDeps = wholeAttemptDeps(context, budget, failureMapping)
    const attemptFn: AttemptFn<T> = (...of) => runAttempt(...of, budget)
    const served = await attemptRoutes(attempts, attemptFn, attemptDeps)
    served.carried.end()
    const { exchange, body, response, providerResponseId } = await write(served)
    const answer = await once?.seal({ headers: response.headers, body })
    const proof = { ...served.value, providerResponseId, clientRequest, clientResponse: body }
    const deps = settleDeps(context, admission.customerId)
    const kept = answer === undefined ? exchange : { ...exchange, answer }
    await settleWhole(kept, receiptId, proof, deps)
    return response
  } catch (error) {
    await releaseAdmission(context, admission)
    throw error
  } finally {
    budget.end()
  }
}

/** The request that an answer belongs to, and the parser of the answer. */
export interface AnswerReading<Answer> {
  readonly context: Context
  readonly customerId: string
  /** Throws BrokenStream on an answer that cannot be passed on. */
  readonly read: (answer: JsonObject) => Steps<Answer>
}

/** An answer that was read, with the digests for its receipt. */
export type ReadAnswer<Answer> = ProviderProof & { readonly answer: Answer }

/**
 * One attempt on one route without streaming. Providers send headers with the finished answer, so only the request's
 * budget limits it, and `limitMs` while other routes remain.
 * @throws AttemptFailure
 */
export async function requestWhole<Answer>(
  { context, customerId, read }: AnswerReading<Answer>,
  call: Pick<ProviderCall, 'route' | 'path' | 'constraints'> & { readonly body: Bytes },
  limitMs: number | undefined,
  budget: Budget,
): Promise<ReadAnswer<Answer>> {
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
    const bytes = await readWholeBody(reply, clock, context.takeMemory)
    return {
      answer: await readAnswer(bytes, readingTurn(context, customerId), read),
      requestDigest: await sha256Hex(call.body),
      responseDigest: await sha256Hex(bytes),
      evidenceSha256: reply.evidenceSha256,
      decoded: reply.decoded,
    }
  } finally {
    clock.stop()
  }
}
