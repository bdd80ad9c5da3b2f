import { BrokenStream } from './broken-stream.ts'

/** Finish reasons that report a failed generation, in lower case. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'abort', 'insufficient_system_resource'])

/** Maximum length of a finish reason: longer than any that known servers send. */
const MAX_CHARACTERS = 64

/**
 * A provider's finish reason, unchanged, whether or not it is in OpenAI's list. Undefined when it is absent, null, or
 * the empty string that some servers put on chunks before the last.
 * @throws BrokenStream `bad_finish` when the reason reports a failed generation, or is not a short string
 */
export function readFinishReason(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const isReason = typeof value === 'string' && value.length <= MAX_CHARACTERS
  if (!isReason || FAILURES.has(value.toLowerCase())) throw new BrokenStream('bad_finish')
  return value
}
