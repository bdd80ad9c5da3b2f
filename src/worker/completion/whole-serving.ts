import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { releaseAdmission } from '../admission.ts'
import { callDeps, settleDeps, wholeAttemptDeps, type Context } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { jsonText } from '../http/reply.ts'
import type { Once } from '../idempotency/once.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider, type ProviderCall } from '../provider/call.ts'
import { classifyResponse } from '../provider/failure.ts'
import { checkAnswerSize } from '../provider/answer-size.ts'
import { readWholeBody } from '../provider/whole-body.ts'
import { attemptRoutes, type AttemptFn, type Served } from '../routing/attempt.ts'
import { Budget, pause } from '../routing/budget.ts'
import { CHAT_FAILURE_MAPPING } from '../routing/failure-mapping.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Admission } from '../settle/admit.ts'
import type { Exchange } from '../settle/exchange.ts'
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
  readonly headers: Readonly<Record<string, string>>
  readonly providerResponseId: string | undefined
}

const outOfTime = () =>
  new ApiError('upstream_timeout', 'The request ran out of time before a provider answered.')

/**
 * Serves a request that is not streamed: attempts -> encoded -> settled. If settlement fails, the answer is withheld
 * and costs nothing. If the client disconnects, the request still runs to its end.
 * @throws ApiError when no route served it
 * @throws LinkUnavailable
 * @throws StorageUnavailable
 */
export async function serveWhole<T extends ProviderProof>(
  request: WholeRequest,
  runAttempt: (...of: [...Parameters<AttemptFn<T>>, budget: AbortSignal]) => Promise<T>,
  write: (served: Served<T>) => WrittenAnswer,
): Promise<Response> {
  const { context, admission, receiptId, clientRequest, once, attempts } = request
  const tools = settleDeps(context, admission.customerId)
  const budget = new Budget(context.now)
  budget.limit(request.timeoutMs, outOfTime)
  try {
    const attemptTools = wholeAttemptDeps(context, budget, CHAT_FAILURE_MAPPING)
    const attemptFn: AttemptFn<T> = (...of) => runAttempt(...of, budget.signal)
    const served = await attemptRoutes(attempts, attemptFn, attemptTools)
    const { exchange, body, headers, providerResponseId } = write(served)
    const response = jsonText(body, headers)
    const answer = await once?.seal({ headers: response.headers, body })
    const proof = { ...served.value, providerResponseId, clientRequest, clientResponse: body }
    await settleWhole({ ...exchange, answer: answer ?? null }, receiptId, proof, tools)
    return response
  } catch (error) {
    await releaseAdmission(context, admission)
    throw error
  } finally {
    budget.end()
  }
}

/**
 * One attempt on one route without streaming. Providers send headers with the finished answer, so only the request's
 * budget limits it, and `limitMs` while other routes remain.
 * @throws AttemptFailure
 */
export async function requestWhole(
  context: Context,
  call: Pick<ProviderCall, 'route' | 'path' | 'constraints'> & { readonly body: Bytes },
  limitMs: number | undefined,
  budget: AbortSignal,
): Promise<ProviderProof & { readonly bytes: Bytes }> {
  const clock = new AttemptClock(budget, context.now)
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
    await checkAnswerSize(bytes, () => pause(0))
    return {
      bytes,
      requestDigest: await sha256Hex(call.body),
      responseDigest: await sha256Hex(bytes),
      evidenceSha256: reply.evidenceSha256,
      decoded: reply.decoded,
    }
  } finally {
    clock.stop()
  }
}
