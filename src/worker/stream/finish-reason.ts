import { BrokenStream } from './broken-stream.ts'

/** Words by which providers say that generation failed, in lower case. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'abort', 'insufficient_system_resource'])

/** Longer than any word a server ends an answer with; what is longer is text and not a reason. */
const MAX_CHARACTERS = 64

/**
 * A provider's finish reason as it gave it, whether or not it is one of those that clients know; undefined for null,
 * absent and the empty string that some servers put on middle chunks. Throws `BrokenStream` `bad_finish` on a reason
 * that says that generation failed, and on a value that is no reason at all.
 */
export function readFinishReason(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const isReason = typeof value === 'string' && value.length <= MAX_CHARACTERS
  if (!isReason || FAILURES.has(value.toLowerCase())) throw new BrokenStream('bad_finish')
  return value
}
