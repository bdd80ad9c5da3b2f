/** Bytes per token assumed in estimates: few current tokenizers have shorter tokens on average, in any language. */
export const BYTES_PER_TOKEN = 3

/** ceil(UTF-8 bytes of content, reasoning and tool arguments / 3). */
export function estimateTextTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}
