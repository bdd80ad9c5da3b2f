import { capTokens, type UsageBound } from './cap-tokens.ts'
import { estimateTextTokens } from './estimate-text.ts'
import type { TokenUsage } from './token-usage.ts'

/** What a provider has produced, as far as it was received, whether or not it was delivered to the client. */
export interface Produced {
  /** The provider's own count, if one was received. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text that this count does not cover, from which completion tokens are estimated. */
  readonly uncountedTextBytes: number
  /** The provider's count of prompt and answer together, where it did not say how many of them are of which. */
  readonly totalTokens?: number | undefined
}

/** Counts of the prompt and of the answer. */
type TwoCounts = Pick<TokenUsage, 'promptTokens' | 'completionTokens'>

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
  { usage, uncountedTextBytes, totalTokens }: Produced,
  bound: BillingBound,
): { readonly usage: TokenUsage; readonly capped: boolean } {
  const { promptTokens = 0, completionTokens = 0 } = usage ?? {}
  const estimates = {
    promptTokens: countedPrompt(usage) === undefined ? bound.promptEstimate : 0,
    completionTokens: estimateTextTokens(uncountedTextBytes),
  }
  const added = withinTotal(estimates, { promptTokens, completionTokens }, totalTokens)
  const claimed = {
    promptTokens: promptTokens + added.promptTokens,
    completionTokens: completionTokens + added.completionTokens,
    cachedTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
  }
  return capTokens(claimed, bound)
}

/** The provider's count of the prompt, which is never empty; undefined where it sent none. */
export function countedPrompt(usage: TokenUsage | undefined): number | undefined {
  return usage?.promptTokens === 0 ? undefined : usage?.promptTokens
}

/**
 * The router's own estimates, but with the provider's counts no more than its total, where it gave one. What is too much is taken
 * from the answer first, whose tokens cost more. Where the estimates are less than the total they stay as they are: nothing
 * tells of which price the rest is.
 */
export function withinTotal(
  estimates: TwoCounts,
  counted: TwoCounts,
  total: number | undefined,
): TwoCounts {
  if (total === undefined) return estimates
  const rest = Math.max(0, total - counted.promptTokens - counted.completionTokens)
  const promptTokens = Math.min(estimates.promptTokens, rest)
  return {
    promptTokens,
    completionTokens: Math.min(estimates.completionTokens, rest - promptTokens),
  }
}
