import type { ToolIdentity } from '../../protocol/stream-record.ts'
import type { BlockHead } from '../stream/blocks.ts'
import type { Logprobs } from '../stream/logprobs.ts'
import { customInput } from './custom-input.ts'

/** One item of an answer's `output` while it is being written. */
export interface OutputItem {
  readonly id: string
  /** Undefined for reasoning, text and refusals. */
  readonly tool: { readonly identity: ToolIdentity; readonly callId: string } | undefined
  readonly kind: BlockHead['kind']
  text: string
  readonly logprobs: object[]
}

/** The parts of a request and answer that items depend on. */
export interface ItemOptions {
  /** Part of the item ids, which keeps them distinct from those of other answers. */
  readonly answerId: string
  readonly tools: ReadonlyMap<string, ToolIdentity>
  readonly encryptedContent: boolean
}

const ID_PREFIXES = { reasoning: 'rs', text: 'msg', refusal: 'msg', function: 'fc', custom: 'ctc' }

/**
 * Creates an item at the start of a block. A tool that the request does not contain is shown as the function that the model
 * called.
 */
export function newItem(head: BlockHead, position: number, options: ItemOptions): OutputItem {
  const { kind } = head
  const tool =
    kind === 'tool' ? { identity: identityOf(head.name, options), callId: head.id } : undefined
  const prefix = ID_PREFIXES[kind === 'tool' ? (tool?.identity.kind ?? 'function') : kind]
  const id = `${prefix}_${options.answerId}_${position}`
  return { id, tool, kind, text: '', logprobs: [] }
}

function identityOf(name: string, { tools }: ItemOptions): ToolIdentity {
  return tools.get(name) ?? { kind: 'function', name, namespace: undefined }
}

/** Adds to an item's text. */
export function extendItem(item: OutputItem, text: string, logprobs: Logprobs | null): void {
  item.text += text
  // No spread: it throws a RangeError for a few hundred thousand tokens.
  for (const token of logprobs?.content ?? []) item.logprobs.push(token)
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** The item as the client sees it. A new one is empty. */
export function itemJson(
  item: OutputItem,
  status: ItemStatus,
  { encryptedContent }: Pick<ItemOptions, 'encryptedContent'>,
): object {
  const begun = status === 'in_progress'
  const { id, tool, kind, text } = item
  if (tool !== undefined) return callJson(item, tool, status)
  if (kind === 'reasoning') {
    return {
      id,
      type: 'reasoning',
      summary: begun ? [] : [{ type: 'summary_text', text }],
      ...(encryptedContent && { encrypted_content: null }),
    }
  }
  return {
    id,
    type: 'message',
    status,
    role: 'assistant',
    content: begun ? [] : [partJson(item)],
  }
}

/** The single part of a message's content. */
export function partJson({ kind, text, logprobs }: OutputItem): object {
  return kind === 'refusal'
    ? { type: 'refusal', refusal: text }
    : { type: 'output_text', text, annotations: [], logprobs }
}

function callJson(
  { id, text }: OutputItem,
  { identity, callId }: NonNullable<OutputItem['tool']>,
  status: ItemStatus,
): object {
  const { kind, name, namespace } = identity
  return {
    id,
    type: kind === 'custom' ? 'custom_tool_call' : 'function_call',
    status,
    call_id: callId,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(kind === 'custom' ? { input: text === '' ? '' : customInput(text) } : { arguments: text }),
  }
}
