import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { Effort } from '../../protocol/effort.ts'
import type { Range } from '../json/scan.ts'

/** Members that are forwarded byte for byte and never read; the provider rejects those it does not support. */
export const PASSED_MEMBERS = [
  'top_p',
  'top_k',
  'n',
  'stop',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'logprobs',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'user',
] as const

/** Members in which callers may request reasoning; only `reasoning` with one effort name is allowed. */
export const REASONING_MEMBERS = ['reasoning', 'reasoning_effort', 'chat_template_kwargs'] as const

export type ReasoningMember = (typeof REASONING_MEMBERS)[number]

/** Kinds of content parts other than text; `file` includes unknown ones. */
export const MEDIA_KINDS = ['image', 'audio', 'video', 'file'] as const

export type MediaKind = (typeof MEDIA_KINDS)[number]

/** The content of the messages, as far as the router needs it. */
export interface Messages extends Range {
  readonly count: number
  /** UTF-8 bytes of text: contents, text parts, earlier reasoning; tool calls as written. */
  readonly textBytes: number
  /** Number of content parts other than text, by kind. */
  readonly media: Readonly<Record<MediaKind, number>>
  /** Bytes of inline images and videos as written; their tokens do not depend on them. */
  readonly pictureBytes: number
  /** Bytes of inline audio as written. */
  readonly audioBytes: number
  /** Assistant messages that carry earlier reasoning, in order. */
  readonly withReasoning: readonly Range[]
}

/** A checked chat completion request. Values stay in the client's bytes; ranges locate them. */
export interface ChatRequest {
  /** The body as the client sent it. */
  readonly bytes: Bytes
  readonly model: string
  readonly stream: boolean
  /** Whether the caller requests usage on the last chunk of the stream. */
  readonly includeUsage: boolean
  readonly includeReasoning: boolean
  /** The requested effort; undefined also where `reasoningMembers` holds something invalid. */
  readonly reasoning: Effort | undefined
  /** Whether only routes with exactly this effort qualify, or each may use the nearest it supports. */
  readonly effortMatch: 'exact' | 'nearest'
  /** The member of the client's body that names the effort, or switches reasoning off; undefined where none does. */
  readonly effortMember: string | undefined
  /** Whether reasoning is hidden only by the default of the format. */
  readonly reasoningHiddenByDefault: boolean
  /** Reasoning members that are present and not null. */
  readonly reasoningMembers: readonly ReasoningMember[]
  readonly failover: readonly string[]
  /** What the client requires of the provider. */
  readonly constraints: Constraints | undefined
  readonly temperature: number | undefined
  /** Maximum number of generated tokens, by either of its two names. */
  readonly maxTokens: number | undefined
  /** Number of requested answers (`n`), at least 1. */
  readonly choices: number
  /**
   * The last occurrence of each member that every route is sent or that the router checks, including those that are `null`.
   */
  readonly members: ReadonlyMap<string, Range>
  /** The last occurrence of every other member, in order: a route's `forward` decides whether it is sent. */
  readonly otherMembers: ReadonlyMap<string, Range>
  readonly messages: Messages
}
