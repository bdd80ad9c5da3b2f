import type { AnswerHead } from '../stream/answer-head.ts'
import type { AnswerEnd } from '../stream/encoder.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { SequencedEvents } from './sequenced-events.ts'

/** The members that differ between the states of one response. */
export interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly output: readonly object[]
  readonly error?: { readonly code: string; readonly message: string }
  readonly incomplete?: 'max_output_tokens' | 'content_filter'
  readonly usage?: UsageReport | undefined
}

/** The response object. `echo` repeats members of its request. */
export function responseJson(head: AnswerHead, echo: JsonObject, state: ResponseState): object {
  const { status, output, error, incomplete, usage } = state
  return {
    id: head.id,
    object: 'response',
    created_at: head.created,
    completed_at: status === 'completed' ? head.created : null,
    status,
    error: error ?? null,
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    model: head.model,
    output,
    ...echo,
    usage: usage === undefined ? null : usageJson(usage),
  }
}

function usageJson(usage: UsageReport): object {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    input_tokens: promptTokens,
    input_tokens_details: {
      cached_tokens: cachedTokens ?? 0,
      cache_write_tokens: cacheWriteTokens ?? 0,
    },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens ?? 0 },
    total_tokens: promptTokens + completionTokens,
  }
}

const INCOMPLETE: ReadonlyMap<string, ResponseState['incomplete']> = new Map(
  Object.entries({
    length: 'max_output_tokens',
    max_tokens: 'max_output_tokens',
    content_filter: 'content_filter',
  } as const),
)

/** Why an answer is incomplete; undefined where it is complete. */
export function incompleteReason({
  finishReason,
}: Pick<AnswerEnd, 'finishReason'>): ResponseState['incomplete'] {
  return INCOMPLETE.get(finishReason)
}

/** The events before the first item of a streamed response. */
export interface OpeningEvents {
  readonly text: string
  readonly count: number
}

/** The events that open a streamed response; they depend on the request alone. */
export function openingEvents(head: AnswerHead, echo: JsonObject): OpeningEvents {
  const response = responseJson(head, echo, { status: 'in_progress', output: [] })
  const events = new SequencedEvents()
  events.add('response.created', { response })
  events.add('response.in_progress', { response })
  return { text: events.take(), count: events.count }
}
