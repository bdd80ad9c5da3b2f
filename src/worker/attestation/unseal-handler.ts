import { fromUtf8 } from '../../protocol/bytes.ts'
import { MAX_UNSEAL_BYTES } from '../../protocol/unseal.ts'
import type { Handler } from '../context.ts'
import { readBody } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'
import { json } from '../http/reply.ts'

/**
 * POST /unseal: takes a document with which the operator replaces the secrets of a running router. It needs no API key: the
 * daemon verifies its signature. TLS only, since it holds secrets.
 */
export const postUnseal: Handler = async (request, { link, now }) => {
  if (new URL(request.url).protocol !== 'https:') {
    throw new ApiError('unseal_refused', 'Secrets are taken over TLS only.')
  }
  const body = await readBody(request, { maxBytes: MAX_UNSEAL_BYTES, tooLarge, now })
  const answer = await link.unseal(text(body))
  if (answer.outcome === 'accepted') return json(answer)
  throw new ApiError('unseal_refused', answer.message, { members: { reason: answer.reason } })
}

const tooLarge = () => new ApiError('request_too_large', 'The document is too large.')

function text(body: Uint8Array): string {
  try {
    return fromUtf8(body)
  } catch {
    throw new ApiError('invalid_request_error', 'The document is not UTF-8.')
  }
}
