import type { AdmittedChat } from './admitted.ts'
import type { AnswerHead } from '../stream/answer-head.ts'

/** The id of this request's answer. */
export function answerId({ context, format }: AdmittedChat): string {
  return format.idPrefix + context.requestId
}

/** The head of this request's answer; `model` is the route that serves it, or the requested one when none does. */
export function answerHead(admitted: AdmittedChat, model: string): AnswerHead {
  const created = Math.floor(admitted.context.now() / 1000)
  return { id: answerId(admitted), created, model }
}
