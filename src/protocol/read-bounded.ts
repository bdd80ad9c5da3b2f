import { concatBytes, type Bytes } from './bytes.ts'

/** What is read of a body, so that those of any runtime fit. */
interface ReadableBody {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(reason?: unknown): Promise<void>
  }
}

/**
 * A whole body of at most so many bytes: whoever answers in another's place could send one without an end.
 * @returns undefined when it is larger; the rest is not read
 */
export async function readBounded(
  body: ReadableBody | null,
  maxBytes: number,
): Promise<Bytes | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  const reader = body?.getReader()
  // Not every browser supports iterating over a stream, and each read follows the one before.
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    const { value = new Uint8Array() } = next
    size += value.length
    if (size > maxBytes) {
      void reader?.cancel(new Error('the body is too large')).catch(() => {})
      return undefined
    }
    parts.push(value)
  }
  return concatBytes(...parts)
}
