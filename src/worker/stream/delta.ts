import type { Logprobs } from './logprobs.ts'
import type { ToolFragment } from './tool-calls.ts'

/**
 * One step of an answer in the internal format, independent of the provider's frames and of the client's format. The
 * members of one delta take effect in the order in which they are listed.
 */
export interface Delta {
  readonly reasoning: string | undefined
  /** Empty where only log probabilities arrived. */
  readonly content: string | undefined
  readonly refusal: string | undefined
  readonly toolCalls: readonly ToolFragment[]
  readonly logprobs: Logprobs | null
}

/** A delta without content, to be spread into others. */
export const NOTHING: Delta = {
  reasoning: undefined,
  content: undefined,
  refusal: undefined,
  toolCalls: [],
  logprobs: null,
}

/** A delta with only text content. */
export function textDelta(content: string): Delta {
  return { content, reasoning: undefined, refusal: undefined, toolCalls: [], logprobs: null }
}
