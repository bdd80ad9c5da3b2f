import { MAX_RESPONSE_ID_CHARS } from '../../protocol/link.ts'

/**
 * The provider's own id of an answer. One that cannot be asked for again, because it is too long or holds half a
 * surrogate pair, is as good as none, and must not cost the answer its receipt.
 */
export function readResponseId(id: unknown): string | undefined {
  const usable =
    typeof id === 'string' && id !== '' && id.length <= MAX_RESPONSE_ID_CHARS && id.isWellFormed()
  return usable ? id : undefined
}
