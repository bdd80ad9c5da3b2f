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

/**
 * An admission may still be committed after its call timed out, within the ten seconds that a storage may take for a
 * batch, so the last attempt comes after that time.
 */
const RELEASE_DELAYS_MS = [500, 2_500, 12_000]

/** Releases the reservation of a request that may have been admitted although the storage's answer was lost. */
export async function releaseLost(
  requestId: string,
  { ledger, log, pause }: ReleaseDeps & { readonly pause: (ms: number) => Promise<void> },
): Promise<void> {
  let failure: unknown
  for (const ms of RELEASE_DELAYS_MS) {
    await pause(ms)
    try {
      if (await releaseReservation(ledger, requestId)) return
      failure = undefined
    } catch (error) {
      failure = error
    }
  }
  if (failure !== undefined) {
    log('release_failed', { request_id: requestId, ...errorFields(failure) })
  }
}
