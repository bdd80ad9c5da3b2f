import { errorFields } from '../http/error-fields.ts'
import type { Log } from '../http/log.ts'
import type { Database } from '../storage/database.ts'
import { releaseReservation } from './ledger.ts'

/** Gives the reservation of a request that costs nothing back; where that fails the sweep does it later. */
export async function release(
  requestId: string,
  { ledger, log }: { readonly ledger: Database; readonly log: Log },
): Promise<void> {
  try {
    await releaseReservation(ledger, requestId)
  } catch (error) {
    log('release_failed', { request_id: requestId, ...errorFields(error) })
  }
}
