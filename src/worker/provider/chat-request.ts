import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { Effort } from '../../protocol/effort.ts'
import type { Range } from '../json/scan.ts'

/** Members handed on byte for byte and unread; the provider answers for what it does not support. */
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

/** Members in which callers ask for reasoning; only `reasoning`, as one word of the ladder, is allowed. */
export const REASONING_MEMBERS = ['reasoning', 'reasoning_effort', 'chat_template_kwargs'] as const

export type ReasoningMember = (typeof REASONING_MEMBERS)[number]

/** Kinds of content parts that are no text; `file` also stands for those that nobody knows. */
export const MEDIA_KINDS = ['image', 'audio', 'video', 'file'] as const

export type MediaKind = (typeof MEDIA_KINDS)[number]

/** What the messages hold, as far as the router needs to know. */
export interface Messages extends Range {
  readonly count: number
  /** UTF-8 bytes of text: contents, text parts, earlier reasoning; tool calls as written. */
  readonly textBytes: number
  /** Content parts that are no text, by what they hold. */
  readonly media: Readonly<Record<MediaKind, number>>
  /** Bytes of inline images and videos as written, whose tokens are not made of bytes. */
  readonly pictureBytes: number
  /** Bytes of inline audio as written. */
  readonly audioBytes: number
  /** Assistant messages that carry earlier reasoning, in order. */
  readonly withReasoning: readonly Range[]
}

/** A checked chat completion request. Values stay in the client's bytes; ranges tell where. */
export interface ChatRequest {
  /** The body as the client sent it. */
  readonly bytes: Bytes
  readonly model: string
  readonly stream: boolean
  /** Whether the caller wants usage on the last chunk of the stream. */
  readonly includeUsage: boolean
  readonly includeReasoning: boolean
  /** The effort asked for; undefined also where `reasoningMembers` holds something unusable. */
  readonly reasoning: Effort | undefined
  /** Whether only routes with exactly this effort will do, or each may take the nearest it has. */
  readonly effortMatch: 'exact' | 'nearest'
  /** Whether the body asks for one effort in particular. */
  readonly effortGiven: boolean
  /** Whether reasoning is left out of the answer only because the body says nothing of it. */
  readonly reasoningHiddenByDefault: boolean
  /** Members about reasoning that were sent and not null. */
  readonly reasoningMembers: readonly ReasoningMember[]
  readonly failover: readonly string[]
  /** What the provider must meet. */
  readonly constraints: Constraints | undefined
  readonly temperature: number | undefined
  /** The cap on generated tokens, whichever of its two names was used. */
  readonly maxTokens: number | undefined
  /** Answers asked for with `n`, at least 1. */
  readonly choices: number
  /** The last occurrence of each member that every route is sent or the router checks; `null` ones are left in. */
  readonly members: ReadonlyMap<string, Range>
  /** The last occurrence of every other member, in order: a route's `forward` decides about them. */
  readonly otherMembers: ReadonlyMap<string, Range>
  readonly messages: Messages
}
