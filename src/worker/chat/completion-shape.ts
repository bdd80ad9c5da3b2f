import type { PlannedAttempt } from '../routing/plan.ts'
import type { AdmittedChat } from './admitted.ts'

/** Until then the compatibility alias `reasoning_content` stands beside `reasoning` (interface: "Versioning"). */
const REASONING_ALIAS_ENDS = Date.UTC(2026, 8, 1)

/** What the router itself decides about the form of an answer. */
export interface CompletionShape {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly includeReasoning: boolean
  readonly reasoningAlias: boolean
}

/** The shape of this request's answer when this route serves it. */
export function completionShape(admitted: AdmittedChat, attempt: PlannedAttempt): CompletionShape {
  const now = admitted.context.now()
  return {
    id: `chatcmpl-${admitted.context.requestId}`,
    created: Math.floor(now / 1000),
    model: attempt.route.id,
    includeReasoning: admitted.chat.includeReasoning,
    reasoningAlias: now < REASONING_ALIAS_ENDS,
  }
}
