import type { JsonObject } from './json-object.ts'

/**
 * The text that ended a choice, as far as the provider reports it: vLLM in `stop_reason`, SGLang in `matched_stop`. Both may
 * also report a token's number there, which means nothing to a client, and other servers use values of their own; so before
 * this is shown, it must be compared with the stop sequences that the client sent.
 */
export function readStopSequence(choice: JsonObject): string | undefined {
  const { stop_reason: reason, matched_stop: matched } = choice
  return [reason, matched].find((value): value is string => typeof value === 'string')
}
