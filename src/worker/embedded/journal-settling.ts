import { failedCall, type LedgerOutcome, type SettleCall } from '../storage/ledger-calls.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import type { Accounts } from './accounts.ts'
import type { Journal } from './journal.ts'
import type { PendingBills } from './pending.ts'
import { billInMemory, isOrdinary, keepEvidence } from './settlement.ts'

type Outcomes = Map<SettleCall, LedgerOutcome>

/** What settlements in memory and journal work on. */
export interface SettlingParts {
  readonly store: SyncStore
  readonly accounts: Accounts
  readonly journal: Journal
  readonly pending: PendingBills
  /** Folds, after which the journal is empty. */
  readonly makeRoom: () => Promise<void>
}

/** Settles in memory what memory can decide, and writes it to the journal. */
export class JournalSettling {
  readonly #parts: SettlingParts
  #haveTablesAnswered = false

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /**
   * Settles as much at once as the journal takes. Never throws.
   * @returns the outcomes of those that were settled here or failed; all others are undecided, and nothing was changed
   */
  async settle(calls: readonly SettleCall[]): Promise<Outcomes> {
    const { journal } = this.#parts
    const outcomes: Outcomes = new Map()
    const texts = new Map<SettleCall, string>()
    for (const call of calls) {
      const text = call.entry.claim === null ? (call.text ?? JSON.stringify(call.entry)) : undefined
      if (text !== undefined && journal.takes(text)) texts.set(call, text)
    }
    for (const some of journal.divide(texts)) {
      // One transaction after another.
      for (const [call, outcome] of await this.#settleTogether(some)) outcomes.set(call, outcome)
    }
    return outcomes
  }

  async #settleTogether(calls: ReadonlyMap<SettleCall, string>): Promise<Outcomes> {
    const { accounts, journal, pending, makeRoom } = this.#parts
    const undo: (() => void)[] = []
    const billed: Outcomes = new Map()
    try {
      if (!journal.hasRoom([...calls.values()])) await makeRoom()
      const { isSettled, hasReceipt } = this.#lookUp([...calls.keys()])
      const texts: string[] = []
      for (const [call, text] of calls) {
        const { entry } = call
        const isNew = !isSettled(entry)
        if (isNew && (hasReceipt(entry) || !isOrdinary(accounts, entry))) continue
        const missingEvidence = keepEvidence(accounts, entry)
        billed.set(call, {
          ok: true,
          kind: 'settle',
          result: { outcome: 'settled', missingEvidence },
        })
        if (!isNew) continue
        const { bill, undo: undoBill } = billInMemory(accounts, entry)
        pending.add(bill)
        undo.push(undoBill)
        texts.push(text)
      }
      await this.#writeJournal(texts)
      return billed
    } catch (error) {
      for (const takeBack of undo.toReversed()) {
        takeBack()
        pending.removeLast()
      }
      const failed = failedCall(error)
      return new Map(Array.from(calls.keys(), (call) => [call, failed]))
    }
  }

  /**
   * Asks the tables only about requests that they can know, and once about any: a file that lacks a table must not have
   * requests served until the next fold fails.
   */
  #lookUp(calls: readonly SettleCall[]) {
    const { accounts, pending } = this.#parts
    const entries = calls.map(({ entry }) => entry)
    const unknown = entries.filter((entry) => !accounts.isSurelyNew(entry))
    const found = pending.lookUp(this.#haveTablesAnswered ? unknown : entries)
    this.#haveTablesAnswered = true
    return found
  }

  async #writeJournal(texts: readonly string[]): Promise<void> {
    if (texts.length === 0) return
    const { store, journal } = this.#parts
    const chunks = journal.pack(texts)
    const write = () => journal.write(chunks)
    // A commit that fails with the answer takes this memory with it; `EmbeddedLedger.held` has what must outlive it.
    if (store.transactWithAnswer === undefined) await store.transact(write)
    else store.transactWithAnswer(write)
    journal.wrote(chunks)
  }
}
