/** Token counts of one exchange, as billed. The cache counts are parts of `promptTokens`. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly completionTokens: number
  /** Prompt tokens that the provider read from its cache. */
  readonly cachedTokens: number
  /** Prompt tokens that the provider wrote to its cache. */
  readonly cacheWriteTokens: number
}
