import type { SyncStore } from '../storage/sync-store.ts'
import { findSettled, receiptName, type Named, type Settled } from './settled.ts'
import type { Bill } from './settlement.ts'

/** The settlements that the journal has and the tables have not. */
export class PendingBills {
  readonly #store: Pick<SyncStore, 'run'>
  readonly #bills: Bill[] = []
  readonly #requests = new Set<string>()
  readonly #receipts = new Set<string>()

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  get bills(): readonly Bill[] {
    return this.#bills
  }

  add(bill: Bill): void {
    const { requestId, customerId, receipt } = bill.entry
    this.#bills.push(bill)
    this.#requests.add(requestId)
    if (receipt !== null) this.#receipts.add(receiptName(customerId, receipt.id))
  }

  /** Takes back the latest bill. */
  removeLast(): void {
    const bill = this.#bills.pop()
    if (bill === undefined) return
    const { requestId, customerId, receipt } = bill.entry
    this.#requests.delete(requestId)
    if (receipt !== null) this.#receipts.delete(receiptName(customerId, receipt.id))
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
      hasReceipt: (entry) =>
        includesReceipt(stored.receipts, entry) || includesReceipt(this.#receipts, entry),
    }
  }
}

function includesReceipt(names: ReadonlySet<string>, { customerId, receipt }: Named): boolean {
  return receipt !== null && names.has(receiptName(customerId, receipt.id))
}
