import type { Bytes } from '../../protocol/bytes.ts'
import type { PresentedKey } from '../auth/api-key.ts'
import type { Context } from '../context.ts'
import type { IdempotentRequest } from '../idempotency/idempotent-request.ts'
import { readBody } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'

/** A request before its body is parsed. */
export interface ReadRequest {
  readonly key: PresentedKey
  readonly clientRequest: Bytes
  /** Of a request with an `Idempotency-Key`. */
  readonly idempotent: IdempotentRequest | undefined
}

export const MAX_BODY_BYTES = 10 * 1024 * 1024

const tooLarge = () => new ApiError('request_too_large', 'The request body is larger than 10 MiB.')

/**
 * Reads the body of a request to an endpoint of the chat models.
 * @throws ApiError `request_too_large` above 10 MiB, and the other errors of `readBody`
 */
export function readChatBody(
  request: Request,
  { now, after, takeMemory }: Pick<Context, 'now' | 'after' | 'takeMemory'>,
): Promise<Bytes> {
  return readBody(request, { maxBytes: MAX_BODY_BYTES, tooLarge, now, after, takeMemory })
}
