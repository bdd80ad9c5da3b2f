import { concatBytes, type Bytes } from '../protocol/bytes.ts'
import type { AnswerBody } from './transport.ts'

/**
 * A whole body of at most so many bytes: whoever answers in the router's place could send one without an end.
 * @throws Error when it is larger
 */
export async function readWithin(body: AnswerBody | null, maxBytes: number): Promise<Bytes> {
  const parts: Uint8Array[] = []
  let size = 0
  const reader = body?.getReader()
  // Not every browser supports iterating over a stream, and each read follows the one before.
  // oxlint-disable-next-line no-await-in-loop
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    const { value = new Uint8Array() } = next
    size += value.length
    if (size > maxBytes) {
      const error = new Error('the answer is too large')
      void reader?.cancel(error).catch(() => {})
      throw error
    }
    parts.push(value)
  }
  return concatBytes(...parts)
}
