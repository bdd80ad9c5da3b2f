/** Bytes per token assumed in estimates: few current tokenizers have shorter tokens on average, in any language. */
export const BYTES_PER_TOKEN = 3

/** Tokens of so many bytes of UTF-8 text, rounded up. */
export function estimateTextTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}
