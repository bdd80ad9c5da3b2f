import { failedCall, type LedgerOutcome, type SettleCall } from '../storage/ledger-calls.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import type { Accounts } from './accounts.ts'
import type { Journal } from './journal.ts'
import type { PendingBills } from './pending.ts'
import { billInMemory, isOrdinary, keepEvidence } from './settlement.ts'

type Outcomes = Map<SettleCall, LedgerOutcome>

/** What `JournalSettling` works with. */
export interface SettlingParts {
  readonly store: SyncStore
  readonly accounts: Accounts
  readonly journal: Journal
  readonly pending: PendingBills
  /** Folds, which empties the journal. */
  readonly makeRoom: () => Promise<void>
}

/** Settles in memory what memory can decide, and writes those settlements to the journal. */
export class JournalSettling {
  readonly #parts: SettlingParts
  #haveTablesAnswered = false

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /**
   * Settles the calls in as few transactions as the journal allows. Never throws.
   * @returns the outcomes of the calls that were settled here or failed; a call without an outcome is undecided and has
   *   changed nothing
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
      // Sequentially, because transactions must not overlap.
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
   * Looks up which calls are settled already. Requests that are certainly new are not looked up, except the first time: this
   * makes the ledger fail at once, and not only at the next fold, if the database lacks a table.
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
    // If a commit fails after the work (`transactWithAnswer`), the runtime discards this instance; `EmbeddedLedger.held`
    // then passes on the reservations.
    if (store.transactWithAnswer === undefined) await store.transact(write)
    else store.transactWithAnswer(write)
    journal.wrote(chunks)
  }
}
