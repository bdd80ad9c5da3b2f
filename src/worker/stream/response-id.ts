import { MAX_RESPONSE_ID_CHARS } from '../../protocol/link.ts'

/**
 * The provider's own id of an answer. An id that cannot be used in a request (too long, or with an unpaired surrogate)
 * counts as none: it must not make the receipt of the answer impossible.
 */
export function readResponseId(id: unknown): string | undefined {
  const usable =
    typeof id === 'string' && id !== '' && id.length <= MAX_RESPONSE_ID_CHARS && id.isWellFormed()
  return usable ? id : undefined
}
