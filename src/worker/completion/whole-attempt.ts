import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { callTools } from '../context.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider } from '../provider/call.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { classifyResponse } from '../provider/failure.ts'
import { readWholeBody } from '../provider/whole-body.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { readProviderAnswer, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { AdmittedChat } from './admitted.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { answerId } from './answer-head.ts'

/** A provider's finished answer with what a receipt says of its bytes. */
export interface WholeAnswer {
  readonly answer: ProviderAnswer
  readonly requestDigest: string
  readonly responseDigest: string
  readonly evidenceSha256: string | null
  /** Whether the answer came compressed, and its digest is over what was in it. */
  readonly decoded: boolean
}

/**
 * One synchronous try of one route. Providers send headers with the finished answer, so only the request's
 * budget limits it, and `limitMs` while other routes remain.
 */
export async function askWhole(
  admitted: AdmittedChat,
  attempt: PlannedAttempt,
  limitMs: number | undefined,
  budget: AbortSignal,
): Promise<WholeAnswer> {
  const { context, chat } = admitted
  const clock = new AttemptClock(budget, context.now)
  clock.enter(limitMs)
  try {
    const body = buildChatBody(chat, attempt.route, attempt.effort, admitted.cacheSalt)
    const reply = await callProvider({
      route: attempt.route,
      path: '/chat/completions',
      body,
      contentType: 'application/json',
      accept: 'application/json',
      clock,
      ...callTools(context),
      classify: classifyResponse,
    })
    const bytes = await readWholeBody(reply, clock, context.takeMemory)
    return {
      answer: readAnswer(bytes, admitted),
      requestDigest: await sha256Hex(body),
      responseDigest: await sha256Hex(bytes),
      evidenceSha256: reply.evidenceSha256,
      decoded: reply.decoded,
    }
  } finally {
    clock.stop()
  }
}

function readAnswer(bytes: Bytes, admitted: AdmittedChat): ProviderAnswer {
  try {
    const { includeReasoning } = admitted.chat
    return readProviderAnswer(bytes, { id: answerId(admitted), includeReasoning })
  } catch (error) {
    throw toAttemptFailure(error)
  }
}
