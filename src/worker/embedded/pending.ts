import type { HeldReservation } from '../storage/ledger-engine.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { heldBy } from './account.ts'
import { findSettled, receiptName, type Named, type Settled } from './settled.ts'
import type { Bill } from './settlement.ts'

/** The settlements that the journal has and the tables have not. */
export class PendingBills {
  readonly #store: Pick<SyncStore, 'run'>
  readonly #bills: Bill[] = []
  readonly #requests = new Set<string>()
  /** Ids by customer: a name of both would be a new text, with a hash of its own, each time one is looked up. */
  readonly #receipts = new Map<string, Set<string>>()

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  get bills(): readonly Bill[] {
    return this.#bills
  }

  /** What the requests held that were billed. */
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

  /** Takes back the latest bill. */
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

  /** Finds what the tables have of some settlements; the answer is about them and what is pending when it is asked. */
  lookUp(entries: readonly Named[]): {
    readonly isSettled: (entry: Pick<Named, 'requestId'>) => boolean
    readonly hasReceipt: (entry: Named) => boolean
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
