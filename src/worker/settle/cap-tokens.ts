import type { TokenUsage } from '../stream/token-usage.ts'

/** The most that a request can use on a route: what was reserved for it, so that no bill exceeds its reservation. */
export interface UsageBound {
  readonly promptTokens: number
  readonly completionTokens: number
}

/** The same for audio. */
export interface AudioBound extends UsageBound {
  readonly audioSeconds: number
}

/** What a provider claims, held to what is possible, and whether that changed anything. */
export function capTokens(
  claimed: TokenUsage,
  max: UsageBound,
): { readonly usage: TokenUsage; readonly capped: boolean } {
  const promptTokens = Math.min(claimed.promptTokens, max.promptTokens)
  const completionTokens = Math.min(claimed.completionTokens, max.completionTokens)
  const cachedTokens = Math.min(claimed.cachedTokens, promptTokens)
  return {
    usage: {
      promptTokens,
      completionTokens,
      cachedTokens,
      cacheWriteTokens: Math.min(claimed.cacheWriteTokens, promptTokens - cachedTokens),
    },
    capped: promptTokens < claimed.promptTokens || completionTokens < claimed.completionTokens,
  }
}
