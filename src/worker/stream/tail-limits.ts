/** Time limit after the finish reason, ms: only the provider's usage and its terminator are still to come. */
const TAIL_MS = 5_000

/**
 * Time limit after usage as well, ms: only the terminator is still to come, which the digest of the provider's bytes should
 * include.
 */
const LAST_BYTES_MS = 1_000

/** Time limit for the next bytes of a provider's stream after its finish reason, ms; undefined before the finish reason. */
export function tailLimitMs(stream: {
  readonly done: boolean
  readonly finishReason: string | undefined
}): number | undefined {
  if (stream.done) return LAST_BYTES_MS
  return stream.finishReason === undefined ? undefined : TAIL_MS
}
