import type { z } from 'zod'
import { fromUtf8 } from './bytes.ts'
import { MalformedEvidence } from './malformed-evidence.ts'

/**
 * Decodes the UTF-8 text of a document.
 * @throws MalformedEvidence when it is not UTF-8
 */
export function readText(bytes: Uint8Array, document: string): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw new MalformedEvidence(document, 'not UTF-8')
  }
}

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
