import type { JsonObject } from './json-object.ts'

/**
 * The text that ended a choice, as far as the provider says so: vLLM in `stop_reason`, SGLang in `matched_stop`. Both have the
 * number of a token there too, which means nothing to a client, and others have words of their own: whoever shows it first
 * compares it with what the client asked for.
 */
export function readStopSequence(choice: JsonObject): string | undefined {
  const { stop_reason: reason, matched_stop: matched } = choice
  return [reason, matched].find((value): value is string => typeof value === 'string')
}
