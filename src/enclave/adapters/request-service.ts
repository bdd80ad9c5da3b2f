import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'

const TIMEOUT_MS = 15_000

/** The answer of a vendor's service, with any status. */
export interface WebReply {
  readonly status: number
  readonly headers: Headers
  readonly body: Bytes
}

/**
 * Sends a request to a vendor's service, with a timeout of 15 s and a size limit, without following redirects.
 * @throws EvidenceRefused `service_unreachable` when no complete answer arrives in time, or it is larger than
 *   `maxBytes`
 */
export async function requestService(
  webFetch: typeof fetch,
  url: string,
  maxBytes: number,
  init: RequestInit = {},
): Promise<WebReply> {
  const parts: Uint8Array[] = []
  let size = 0
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await webFetch(url, { ...init, redirect: 'error', signal })
    for await (const part of response.body ?? []) {
      size += part.length
      if (size > maxBytes) break
      parts.push(part)
    }
    if (size > maxBytes) throw unreachable()
    return { status: response.status, headers: response.headers, body: concatBytes(...parts) }
  } catch (cause) {
    throw cause instanceof EvidenceRefused ? cause : unreachable(cause)
  }
}

function unreachable(cause?: unknown): EvidenceRefused {
  return new EvidenceRefused('service_unreachable', [], { cause })
}
