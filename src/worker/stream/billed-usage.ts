import { capTokens, type UsageBound } from './cap-tokens.ts'
import { estimateTextTokens } from './estimate-text.ts'
import type { TokenUsage } from './token-usage.ts'

/** What a provider has produced, as far as the router received it, whether or not it was delivered to the client. */
export interface Produced {
  /** The provider's own count, if one was received. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text that this count does not cover, from which completion tokens are estimated. */
  readonly uncountedTextBytes: number
  /** The provider's total count of prompt and answer, where it did not report them separately. */
  readonly totalTokens?: number | undefined
}

/** Token counts of the prompt and of the answer. */
type TwoCounts = Pick<TokenUsage, 'promptTokens' | 'completionTokens'>

/** The limits of a request's counts on a route, and the estimate that completes them. */
export interface BillingBound extends UsageBound {
  /** Billed only where the provider reports no count of the prompt. */
  readonly promptEstimate: number
}

/**
 * The token counts to bill: the provider's, plus the router's own estimate for text after the last count. Counts above the
 * maximum usage of the request are reduced to it, and `capped` is then true.
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

/**
 * The provider's count of the prompt; undefined where it sent none. A count of 0 means none, because a prompt is never
 * empty.
 */
export function countedPrompt(usage: TokenUsage | undefined): number | undefined {
  return usage?.promptTokens === 0 ? undefined : usage?.promptTokens
}

/**
 * Limits the router's estimates so that, together with the provider's counts, they do not exceed the provider's total, where
 * it sent one. The answer's estimate is reduced first, because its tokens cost more. Estimates below the total are not
 * raised, because nothing shows at which price the rest should be billed.
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
