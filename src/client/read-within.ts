import type { Bytes } from '../protocol/bytes.ts'
import { readBounded } from '../protocol/read-bounded.ts'
import type { AnswerBody } from './transport.ts'

/**
 * Reads a complete answer of at most `maxBytes`.
 * @throws Error when it is larger
 */
export async function readWithin(body: AnswerBody | null, maxBytes: number): Promise<Bytes> {
  const bytes = await readBounded(body, maxBytes)
  if (bytes === undefined) throw new Error('the answer is too large')
  return bytes
}
