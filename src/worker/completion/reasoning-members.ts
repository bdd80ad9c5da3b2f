import { EFFORTS } from '../../protocol/effort.ts'
import { ApiError } from '../http/errors.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import { REFUSED_MEMBERS } from './chat-members.ts'
import { refusalOf } from './member-rules.ts'

/**
 * Refuses every way to request reasoning other than one effort name in `reasoning`. For plans without OCR rules; for the
 * others, `checkOcrRequest` checks.
 * @throws ApiError invalid_request_error naming the member
 */
export function checkReasoningMembers({ reasoningMembers, reasoning }: ChatRequest): void {
  for (const name of reasoningMembers) {
    const rule = REFUSED_MEMBERS.get(name)
    if (rule !== undefined) throw refusalOf(rule)
  }
  if (reasoningMembers.length === 0 || reasoning !== undefined) return
  const message = `"reasoning" must be one of the strings ${EFFORTS.join(', ')}.`
  throw new ApiError('invalid_request_error', message, { param: 'reasoning' })
}
