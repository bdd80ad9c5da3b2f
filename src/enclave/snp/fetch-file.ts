import { concatBytes } from '../../protocol/bytes.ts'
import type { Fetcher } from './kds.ts'

const TIMEOUT_MS = 15_000

/** Certificates and chains take a few KiB. */
const MAX_BYTES = 65_536

/**
 * Fetches a small file over HTTPS, within 15 s and 64 KiB, without redirects.
 * @throws Error when the network fails or the file is too large
 */
export const fetchFile: Fetcher = async (url) => {
  const response = await fetch(url, {
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error('the answer is too large')
    chunks.push(chunk)
  }
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after') ?? undefined,
    body: concatBytes(...chunks),
  }
}
