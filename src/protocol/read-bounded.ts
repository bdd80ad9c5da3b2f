import { concatBytes, type Bytes } from './bytes.ts'

/** The part of a body that is used here; bodies of any runtime have it. */
interface ReadableBody {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(reason?: unknown): Promise<void>
  }
}

/**
 * Reads a complete body of at most `maxBytes`: an impostor could send one without an end.
 * @returns undefined when it is larger; the rest is not read
 */
export async function readBounded(
  body: ReadableBody | null,
  maxBytes: number,
): Promise<Bytes | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  const reader = body?.getReader()
  // A loop, because not every browser can iterate over a stream; reads must be sequential.
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
