import { errorFields } from '../http/error-fields.ts'
import type { Log } from '../http/log.ts'
import type { Database } from '../storage/database.ts'
import { releaseReservation } from './ledger.ts'

interface ReleaseDeps {
  readonly ledger: Database
  readonly log: Log
}

/** Releases the reservation of a request that costs nothing. If that fails, the sweep releases it later. */
export async function release(requestId: string, { ledger, log }: ReleaseDeps): Promise<void> {
  try {
    await releaseReservation(ledger, requestId)
  } catch (error) {
    log('release_failed', { request_id: requestId, ...errorFields(error) })
  }
}
