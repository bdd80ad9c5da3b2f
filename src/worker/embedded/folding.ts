import type { SyncStore } from '../storage/sync-store.ts'
import type { Accounts } from './accounts.ts'
import { writeTables } from './fold.ts'
import type { Journal } from './journal.ts'
import type { PendingBills } from './pending.ts'

export interface FoldingParts {
  readonly store: SyncStore
  readonly accounts: Accounts
  readonly journal: Journal
  readonly pending: PendingBills
  /** Called after each fold, with whether there was anything to write. */
  readonly folded: (wrote: boolean) => void
}

/** `leave`: whether folded entries may stay in the journal until later entries or the next fold overwrite them. */
export interface FoldPlan {
  readonly leave: boolean
}

/** Writes the changes of the memory to the tables and empties the journal, in one transaction. */
export class Folding {
  readonly #parts: FoldingParts

  constructor(parts: FoldingParts) {
    this.#parts = parts
  }

  /** Whether the memory has changes that are not in the tables. */
  get isBehind(): boolean {
    const { pending, accounts } = this.#parts
    return pending.bills.length > 0 || accounts.isChanged
  }

  get hasToWrite(): boolean {
    return this.isBehind || this.#parts.journal.hasLeftovers
  }

  /** @throws what the store throws; nothing is lost then */
  async fold(plan: FoldPlan): Promise<void> {
    if (this.hasToWrite) await this.storeWith(plan).transact(() => {})
  }

  /** The store; each of its transactions begins with a fold. */
  storeWith({ leave }: FoldPlan): SyncStore {
    const { store, accounts, journal, pending, folded } = this.#parts
    return {
      run: (sql, params) => store.run(sql, params),
      snapshot: (work) => store.snapshot(work),
      transact: async (work) => {
        const wrote = this.hasToWrite
        const result = await store.transact(() => {
          writeTables(store, accounts, pending.bills)
          journal.fold(leave)
          return work()
        })
        pending.clear()
        accounts.written()
        journal.folded()
        folded(wrote)
        return result
      },
    }
  }
}
