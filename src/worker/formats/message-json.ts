import { utf8 } from '../../protocol/bytes.ts'
import { parseToWrite } from '../json/exact-integers.ts'
import { JsonCursor } from '../json/scan.ts'
import type { BlockHead } from '../stream/blocks.ts'
import { EventText } from '../stream/event-text.ts'
import type { AnswerEnd } from '../stream/encoder.ts'
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

/** The stop members of a message. */
export interface MessageStop {
  readonly stop_reason: string
  readonly stop_sequence: string | null
}

/**
 * Why an answer stopped. A stop sequence reported by the provider counts only if the request contains it: providers use the
 * same member for words of their own.
 */
export function messageStop(
  { finishReason, stopSequence }: Pick<AnswerEnd, 'finishReason' | 'stopSequence'>,
  contains: { tool: boolean; refusal: boolean },
  asked: readonly string[],
): MessageStop {
  const stop_reason = stopReason(finishReason, contains)
  const met = stopSequence !== undefined && asked.includes(stopSequence)
  return met && (stop_reason === 'end_turn' || stop_reason === 'stop_sequence')
    ? { stop_reason: 'stop_sequence', stop_sequence: stopSequence }
    : { stop_reason, stop_sequence: null }
}

/** Some providers report `stop` when the model calls tools. */
function stopReason(finishReason: string, contains: { tool: boolean; refusal: boolean }): string {
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

/** A block as the client sees it; an open one has no text yet. */
export function blockJson(block: BlockHead, text: string): object {
  if (block.kind === 'tool') {
    return { type: 'tool_use', id: block.id, name: block.name, input: toolInput(text) }
  }
  return block.kind === 'reasoning'
    ? { type: 'thinking', thinking: text, signature: '' }
    : { type: 'text', text }
}

/**
 * The parsed arguments of a call. Those that are not valid JSON, or too deeply nested to be serialised, are passed on as
 * text.
 */
function toolInput(args: string): unknown {
  if (args === '') return {}
  try {
    new JsonCursor(utf8(args)).skip()
    return parseToWrite(args)
  } catch {
    return { arguments: args }
  }
}

/** The members that differ between the states of one message. */
export interface MessageState {
  readonly id: string
  readonly model: string
  readonly content: readonly object[]
  readonly stop: MessageStop | null
  readonly usage: UsageReport | undefined
}

/** The message object. */
export function messageJson({ id, model, content, stop, usage }: MessageState): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...(stop ?? { stop_reason: null, stop_sequence: null }),
    usage: messageUsage(usage),
  }
}

/** The events that end a block. */
export function blockEnd(index: number, kind: BlockHead['kind']): string {
  const events = new EventText()
  // Clients store the signature and send it back. The router has none and requires none, so it is empty.
  if (kind === 'reasoning') {
    const delta = { type: 'signature_delta', signature: '' }
    events.add('content_block_delta', { index, delta })
  }
  events.add('content_block_stop', { index })
  return events.take()
}
