import { LinkUnavailable } from '../link/link.ts'
import { StorageUnavailable } from '../storage/database.ts'
import { ApiError } from './errors.ts'

/** Seconds after which clients should retry a router that is temporarily unavailable. */
const RETRY_AFTER_SECONDS = 2

/**
 * The client's error for any thrown value: the error itself, unavailability, or an internal error without details.
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof LinkUnavailable) {
    return unavailable('The enclave that signs receipts cannot be reached.')
  }
  if (error instanceof StorageUnavailable) return unavailable('The storage cannot be reached.')
  return new ApiError('internal', 'The router failed on this request.')
}

function unavailable(message: string): ApiError {
  return new ApiError('service_unavailable', message, { retryAfter: RETRY_AFTER_SECONDS })
}
