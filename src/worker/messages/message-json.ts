import type { UsageReport } from '../stream/usage-tally.ts'

/** Stop reasons by finish reason; an unknown one counts as `end_turn`. */
const STOP_REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    length: 'max_tokens',
    max_tokens: 'max_tokens',
    tool_calls: 'tool_use',
    function_call: 'tool_use',
    content_filter: 'refusal',
    stop_sequence: 'stop_sequence',
  }),
)

/** The stop reason of an answer. Some providers report `stop` where they call tools. */
export function stopReason(
  finishReason: string,
  contains: { tool: boolean; refusal: boolean },
): string {
  const known = STOP_REASONS.get(finishReason)
  if (known !== undefined) return known
  if (contains.refusal) return 'refusal'
  return contains.tool ? 'tool_use' : 'end_turn'
}

/** Token counts in this format: cached tokens are counted separately, not as part of the input. */
export function messageUsage(usage: UsageReport | undefined): object {
  const { promptTokens = 0, completionTokens = 0 } = usage ?? {}
  const read = usage?.cachedTokens ?? 0
  const written = usage?.cacheWriteTokens ?? 0
  return {
    input_tokens: promptTokens - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: completionTokens,
  }
}
