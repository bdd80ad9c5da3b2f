import type { z } from 'zod'
import { MalformedEvidence } from './malformed-evidence.ts'

/**
 * Parses a value with a schema.
 * @throws MalformedEvidence when it does not match; the message names the first wrong member
 */
export function readDocument<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  document: string,
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') ?? ''
  throw new MalformedEvidence(document, `${place === '' ? 'document' : place}: ${issue?.message}`)
}
