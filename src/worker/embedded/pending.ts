import type { HeldReservation } from '../storage/ledger-engine.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { heldBy } from './account.ts'
import { findSettled, receiptName, type SettlementIds, type Settled } from './settled.ts'
import type { Bill } from './settlement.ts'

/** The settlements that are in the journal but not in the tables yet. */
export class PendingBills {
  readonly #store: Pick<SyncStore, 'run'>
  readonly #bills: Bill[] = []
  readonly #requests = new Set<string>()
  /**
   * Receipt ids by customer. Nested, because a joined name of both would have to be built and hashed anew at each look-up.
   */
  readonly #receipts = new Map<string, Set<string>>()

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  get bills(): readonly Bill[] {
    return this.#bills
  }

  /** The reservations of the requests that were billed. */
  held(): readonly HeldReservation[] {
    return this.#bills.flatMap(({ entry: { requestId, customerId }, reservation }) =>
      reservation === undefined ? [] : [heldBy(requestId, customerId, reservation)],
    )
  }

  add(bill: Bill): void {
    const { requestId, customerId, receipt } = bill.entry
    this.#bills.push(bill)
    this.#requests.add(requestId)
    if (receipt === null) return
    const ofCustomer = this.#receipts.get(customerId)
    if (ofCustomer === undefined) this.#receipts.set(customerId, new Set([receipt.id]))
    else ofCustomer.add(receipt.id)
  }

  /** Removes the latest bill again. */
  removeLast(): void {
    const bill = this.#bills.pop()
    if (bill === undefined) return
    const { requestId, customerId, receipt } = bill.entry
    this.#requests.delete(requestId)
    if (receipt !== null) this.#receipts.get(customerId)?.delete(receipt.id)
  }

  clear(): void {
    this.#bills.length = 0
    this.#requests.clear()
    this.#receipts.clear()
  }

  /**
   * Looks up which settlements are stored in the tables. The returned functions answer for these entries, and also count
   * what is pending when they are called.
   */
  lookUp(entries: readonly SettlementIds[]): {
    readonly isSettled: (entry: Pick<SettlementIds, 'requestId'>) => boolean
    readonly hasReceipt: (entry: SettlementIds) => boolean
  } {
    const stored: Settled = findSettled(this.#store, entries)
    return {
      isSettled: ({ requestId }) => stored.requests.has(requestId) || this.#requests.has(requestId),
      hasReceipt: ({ customerId, receipt }) =>
        receipt !== null &&
        (this.#receipts.get(customerId)?.has(receipt.id) === true ||
          (stored.receipts.size > 0 && stored.receipts.has(receiptName(customerId, receipt.id)))),
    }
  }
}
