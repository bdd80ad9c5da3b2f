/**
 * The message of a thrown error, for the operator's logs, refusals, and errors that name a cause. A thrown value that
 * is not an Error is not quoted.
 *
 * The message is passed on unchanged. Where it may quote prompts, keys or a provider's answer, use `traceError`.
 */
export function messageOfThrown(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'unknown error'
}
