import { BrokenStream } from './broken-stream.ts'

/** The finish reasons of the interface. */
const FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_calls'] as const

export type FinishReason = (typeof FINISH_REASONS)[number]

/**
 * A provider's finish reason; undefined for null, absent and the empty string that some servers put on middle
 * chunks. Throws `BrokenStream` `bad_finish` on every other value: `error`, `abort` and
 * `insufficient_system_resource` are failures, and of an unknown one nobody can say that it is not.
 */
export function readFinishReason(value: unknown): FinishReason | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const known = FINISH_REASONS.find((reason) => reason === value)
  if (known === undefined) throw new BrokenStream('bad_finish')
  return known
}
