/** Time limit after the finish reason: only the provider's usage and its terminator are still to come. */
const TAIL_MS = 5_000

/** Time limit after usage as well: only the terminator, which the digest of the provider's bytes should include. */
const LAST_BYTES_MS = 1_000

/** How long the next bytes of a provider's stream may take once its finish reason has come, ms; undefined before. */
export function tailLimitMs(stream: {
  readonly done: boolean
  readonly finishReason: string | undefined
}): number | undefined {
  if (stream.done) return LAST_BYTES_MS
  return stream.finishReason === undefined ? undefined : TAIL_MS
}
