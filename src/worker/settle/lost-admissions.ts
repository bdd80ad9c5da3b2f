import { errorFields } from '../http/error-fields.ts'
import type { Log } from '../http/log.ts'
import { FairShare } from '../limits/fair-share.ts'
import type { Database } from '../storage/database.ts'
import { releaseReservation } from './ledger.ts'

/**
 * Pauses before each attempt to release, ms. A storage may take ten seconds for a batch, so an admission may still be
 * committed after its call timed out; the last attempt comes after that time.
 */
const LOOK_AFTER_MS = [500, 2_500, 12_000]

/**
 * Maximum number of searches at a time, shared fairly among customers, because one customer may retry many times. The first
 * failures of an outage get the places; what fails later has hardly ever reached the storage.
 */
const MAX_SOUGHT = 1_000

/** Longer than any search takes, ms. The runtime ended a search that is older, together with the request that began it. */
const MAX_SEARCH_MS = 60_000

interface Search {
  readonly customerId: string
  readonly begunAt: number
}

interface LostAdmissionsDeps {
  readonly log: Log
  readonly pause: (ms: number) => Promise<void>
  /** Ms. */
  readonly now: () => number
  /** Keeps the work alive after the request that began it has been answered. */
  readonly keepAlive: (work: Promise<unknown>) => void
}

/**
 * Releases the reservations of requests that failed because the storage did not answer, but may have been admitted all the
 * same. The search takes seconds, and does not reduce how many other requests the customers may have open.
 */
export class LostAdmissions {
  readonly #deps: LostAdmissionsDeps
  readonly #places = new FairShare(MAX_SOUGHT)
  /** The searches by request, in the order in which they began. */
  readonly #sought = new Map<string, Search>()

  constructor(deps: LostAdmissionsDeps) {
    this.#deps = deps
  }

  /**
   * Releases the reservation in the background, if there is one. The sweep releases what is not found, or not sought for
   * want of places.
   */
  release(requestId: string, customerId: string, ledger: Database): void {
    const { now, keepAlive } = this.#deps
    this.#forgetEnded(now())
    if (this.#places.take(customerId, 1) !== 'taken') return
    this.#sought.set(requestId, { customerId, begunAt: now() })
    keepAlive(this.#seek(requestId, ledger).finally(() => this.#forget(requestId)))
  }

  #forgetEnded(now: number): void {
    for (const [requestId, { begunAt }] of this.#sought) {
      if (Math.abs(now - begunAt) < MAX_SEARCH_MS) return
      this.#forget(requestId)
    }
  }

  /** Frees the place of a search. Does nothing the second time: a search that was taken for ended may still end. */
  #forget(requestId: string): void {
    const search = this.#sought.get(requestId)
    if (search === undefined) return
    this.#sought.delete(requestId)
    this.#places.giveBack(search.customerId, 1)
  }

  async #seek(requestId: string, ledger: Database): Promise<void> {
    const { log, pause } = this.#deps
    let failure: unknown
    for (const ms of LOOK_AFTER_MS) {
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
}
