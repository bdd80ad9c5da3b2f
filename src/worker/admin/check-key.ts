import type { Context } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { resolveSelector } from '../routing/resolve.ts'
import type { KeyChanges } from './keys.ts'

/**
 * Refuses limits that make a key useless: an expiry in the past, or a model that the configuration does not have.
 * @throws ApiError `invalid_request_error`
 */
export function checkKeyLimits(
  { expires_at: expiresAt, models }: Pick<KeyChanges, 'expires_at' | 'models'>,
  { catalogue, now }: Pick<Context, 'catalogue' | 'now'>,
): void {
  if (typeof expiresAt === 'number' && expiresAt <= now()) {
    throw refusal('expires_at', '"expires_at" is in the past; DELETE ends a key at once.')
  }
  const unknown = models?.find((selector) => resolveSelector(catalogue, selector) === undefined)
  if (unknown === undefined) return
  const message = `No route answers the selector "${unknown}" in \`models\`; GET /v1/models lists those that exist.`
  throw refusal('models', message)
}

function refusal(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', message, { param })
}
