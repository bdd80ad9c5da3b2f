import { capTokens, type UsageBound } from './cap-tokens.ts'
import { estimateTextTokens } from './estimate-text.ts'
import type { TokenUsage } from './token-usage.ts'

/** What a provider has produced, as far as it was received, whether or not it was delivered to the client. */
export interface Produced {
  /** The provider's own count, if one was received. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text that this count does not cover, from which completion tokens are estimated. */
  readonly uncountedTextBytes: number
}

/** What limits and completes the counts of a request on a route. */
export interface BillingBound extends UsageBound {
  /** Billed only where the provider reports no count of the prompt. */
  readonly promptEstimate: number
}

/**
 * The token counts to bill: the provider's, and for text after the last count the router's own estimate. What exceeds the
 * maximum usage of the request is cut off, and `capped` says so.
 */
export function billedUsage(
  { usage, uncountedTextBytes }: Produced,
  bound: BillingBound,
): { readonly usage: TokenUsage; readonly capped: boolean } {
  const claimed = {
    promptTokens: countedPrompt(usage) ?? bound.promptEstimate,
    completionTokens: (usage?.completionTokens ?? 0) + estimateTextTokens(uncountedTextBytes),
    cachedTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
  }
  return capTokens(claimed, bound)
}

/** The provider's count of the prompt, which is never empty; undefined where it sent none. */
export function countedPrompt(usage: TokenUsage | undefined): number | undefined {
  return usage?.promptTokens === 0 ? undefined : usage?.promptTokens
}
