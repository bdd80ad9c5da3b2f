import type { TokenUsage } from './token-usage.ts'

/** Maximum usage of a request on a route. The reservation covers it, so no bill exceeds its reservation. */
export interface UsageBound {
  readonly promptTokens: number
  readonly completionTokens: number
}

/** The maximum usage of a request with audio. */
export interface AudioBound extends UsageBound {
  readonly audioSeconds: number
}

/** Limits a provider's claimed usage to the possible maximum, and reports whether that changed it. */
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
