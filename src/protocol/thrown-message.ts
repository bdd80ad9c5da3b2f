/**
 * The message of what was thrown, for the logs of an operator, refusals, and errors that name what failed. What is no error is not quoted.
 *
 * The message is passed on as it is. Where it may quote prompts, keys or what a provider answers, use `traceError`.
 */
export function messageOfThrown(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'unknown error'
}
