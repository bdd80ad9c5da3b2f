import type { Logprobs } from './logprobs.ts'
import type { ToolFragment } from './tool-calls.ts'

/**
 * One step of an answer in the router's own terms, whatever the provider's frame looked like and whatever format
 * the client reads. Members of one delta happen in the order in which they stand here.
 */
export interface Delta {
  readonly reasoning: string | undefined
  /** Empty where only log probabilities came. */
  readonly content: string | undefined
  readonly refusal: string | undefined
  readonly toolCalls: readonly ToolFragment[]
  readonly logprobs: Logprobs | null
}

/** A delta of nothing but text. */
export function textDelta(content: string): Delta {
  return { content, reasoning: undefined, refusal: undefined, toolCalls: [], logprobs: null }
}
