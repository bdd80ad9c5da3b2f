import { sqlLedger } from '../settle/sql-ledger.ts'
import { failedOutcome, messageOf, rowsOf } from '../storage/batch-outcome.ts'
import type { Database, Statement } from '../storage/database.ts'
import {
  carryOut,
  failedCall,
  type LedgerCall,
  type LedgerOutcome,
} from '../storage/ledger-calls.ts'
import type { LedgerEngine, OpenLedger } from '../storage/ledger-engine.ts'
import { isRead } from '../storage/sql.ts'
import { runBatches, type SqliteAnswer } from '../storage/sqlite-batches.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { Accounts } from './accounts.ts'
import { admitInMemory, BY_SQL } from './admission.ts'
import { concernsLedger } from './concerns.ts'
import { settlementEntrySchema } from './entry-schema.ts'
import { writeTables } from './fold.ts'
import { Journal } from './journal.ts'
import { PendingBills } from './pending.ts'
import { billInMemory, isOrdinary, keepEvidence } from './settlement.ts'

/** How long what was settled and reserved may wait for the tables, ms. */
const FOLD_AFTER_MS = 1_000

/** Accounts beyond this are forgotten with a fold, so that memory does not grow with the number of customers. */
const MAX_ACCOUNTS = 20_000

type SettleCall = Extract<LedgerCall, { kind: 'settle' }>

/**
 * The ledger of an engine whose data has one owner: the object or the thread that holds the SQLite database.
 *
 * Accounts are in its memory, so an admission is a function call. The settlements of a moment are one write to the journal.
 * Once a second, and before anything else needs the tables, a fold brings them up to the memory and empties the journal, in
 * one transaction. So the tables are always those of an earlier moment, and together with the journal they have everything
 * that was settled. After a crash the journal is read again; what was reserved since the last fold has cost nothing and is
 * gone.
 *
 * What memory does not decide (claims, values at the edge of their range, anything after a write has failed) is carried out
 * by the SQL of all engines, after a fold.
 */
export class EmbeddedLedger implements LedgerEngine {
  readonly #store: SyncStore
  readonly #deps: Parameters<OpenLedger>[1]
  readonly #accounts: Accounts
  readonly #journal: Journal
  readonly #pending: PendingBills
  /** Ends when the work that has come so far has ended. Memory and tables are used by one at a time. */
  #last: Promise<unknown> = Promise.resolve()
  #isFoldDue = false
  #lastWriteFailed = false

  constructor(store: SyncStore, deps: Parameters<OpenLedger>[1]) {
    this.#store = store
    this.#deps = deps
    this.#accounts = new Accounts(store)
    this.#journal = new Journal(store)
    this.#pending = new PendingBills(store)
  }

  /** All of it as a database, for maintenance beside it. */
  readonly database: Database = {
    batch: async (statements) => rowsOf(outcomeOf(await this.batches([statements]))),
  }

  /**
   * Makes the journal at the first start, or reads it. The schema must be up to date.
   * @throws Error when the journal holds what the tables do not take; what the store throws when it cannot be written
   */
  async open(): Promise<void> {
    await this.#store.transact(() => {
      this.#journal.create()
      this.#journal.tryWrite()
    })
    const entries = this.#journal
      .read()
      .map((text) => settlementEntrySchema.parse(JSON.parse(text)))
    const { isSettled, hasReceipt } = this.#pending.lookUp(entries)
    for (const entry of entries) {
      if (isSettled(entry)) continue
      if (hasReceipt(entry) || !isOrdinary(this.#accounts, entry)) {
        throw new Error(
          'internal error: the journal holds a settlement that the tables do not take',
        )
      }
      keepEvidence(this.#accounts, entry)
      this.#pending.add(billInMemory(this.#accounts, entry).bill)
    }
    this.#foldSoon()
  }

  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    return this.#exclusively(async () => {
      const outcomes = new Map<LedgerCall, LedgerOutcome>()
      const settlements: SettleCall[] = []
      for (const call of calls) {
        if (call.kind === 'settle') settlements.push(call)
        else keepOutcome(outcomes, call, () => this.#inMemory(call))
      }
      if (!this.#lastWriteFailed) await this.#settle(settlements, outcomes)
      const answers: LedgerOutcome[] = []
      for (const call of calls) answers.push(outcomes.get(call) ?? (await this.#bySql(call)))
      return answers
    })
  }

  /** Runs batches of SQL, which see everything that was settled and reserved before. Never throws for what SQL did. */
  async batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    if (!batches.every((batch) => batch.every(isRead))) {
      return this.#exclusively(() => this.#write(batches))
    }
    if (!batches.some((batch) => batch.some(concernsLedger)))
      return runBatches(this.#store, batches)
    try {
      await this.fold()
    } catch (error) {
      const outcome = failedOutcome(messageOf(error), false)
      return batches.map(() => ({ outcome, wrote: false }))
    }
    return runBatches(this.#store, batches)
  }

  /** Brings the tables up to the memory. @throws what the store throws; nothing is lost then */
  async fold(): Promise<void> {
    if (this.#isBehind) await this.#exclusively(() => this.#fold())
  }

  #inMemory(call: Exclude<LedgerCall, SettleCall>): LedgerOutcome | undefined {
    if (this.#lastWriteFailed) return undefined
    if (call.kind === 'admit') {
      const facts = admitInMemory(this.#accounts, call.entry)
      return facts === BY_SQL ? undefined : { ok: true, kind: 'admit', facts: facts ?? null }
    }
    const { requestId } = call
    const holder = this.#accounts.holderOf(requestId)
    // One that the table has may have a claim, too.
    if (holder === undefined || holder.open.get(requestId)?.stored !== false) return undefined
    this.#accounts.endReservation(holder, requestId)
    return { ok: true, kind: 'release', released: true }
  }

  /** Settles in memory and journal what can be settled there, as much at once as the journal takes. */
  async #settle(calls: readonly SettleCall[], outcomes: Map<LedgerCall, LedgerOutcome>) {
    for (let start = 0; start < calls.length; start += this.#journal.maxEntries) {
      const some = calls.slice(start, start + this.#journal.maxEntries)
      // oxlint-disable-next-line no-await-in-loop -- one transaction after another
      await this.#settleTogether(some, outcomes)
    }
  }

  async #settleTogether(calls: readonly SettleCall[], outcomes: Map<LedgerCall, LedgerOutcome>) {
    const undo: (() => void)[] = []
    const billed = new Map<LedgerCall, LedgerOutcome>()
    try {
      await this.#makeRoom(calls.length)
      const { isSettled, hasReceipt } = this.#pending.lookUp(calls.map(({ entry }) => entry))
      const texts: string[] = []
      for (const call of calls) {
        const { entry } = call
        const text = JSON.stringify(entry)
        const isNew = !isSettled(entry)
        if (entry.claim !== null || !this.#journal.takes(text)) continue
        if (isNew && (hasReceipt(entry) || !isOrdinary(this.#accounts, entry))) continue
        const missingEvidence = keepEvidence(this.#accounts, entry)
        billed.set(call, {
          ok: true,
          kind: 'settle',
          result: { outcome: 'settled', missingEvidence },
        })
        if (!isNew) continue
        const { bill, undo: undoBill } = billInMemory(this.#accounts, entry)
        this.#pending.add(bill)
        undo.push(undoBill)
        texts.push(text)
      }
      await this.#writeJournal(texts)
    } catch (error) {
      for (const takeBack of undo.toReversed()) {
        takeBack()
        this.#pending.removeLast()
      }
      for (const call of calls) outcomes.set(call, this.#failed(error))
      return
    }
    for (const [call, outcome] of billed) outcomes.set(call, outcome)
  }

  async #makeRoom(entries: number): Promise<void> {
    if (!this.#journal.hasRoom(entries)) await this.#fold()
  }

  async #writeJournal(texts: readonly string[]): Promise<void> {
    if (texts.length === 0) return
    const slots = this.#journal.pack(texts)
    await this.#store.transact(() => this.#journal.write(slots))
    this.#journal.wrote(slots.length)
  }

  async #bySql(call: LedgerCall): Promise<LedgerOutcome> {
    const ledger = sqlLedger({
      batch: async (batch) => rowsOf(outcomeOf(await this.#write([batch]))),
    })
    try {
      return await carryOut(ledger, call)
    } catch (error) {
      return failedCall(error)
    }
  }

  /** Runs batches of which at least one writes. */
  async #write(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    const concerned = batches.some((batch) => batch.some(concernsLedger))
    const answers = await runBatches(concerned ? this.#foldingStore : this.#store, batches)
    if (concerned && answers.some(({ wrote }) => wrote)) this.#accounts.forget()
    const failed = answers.some(({ outcome }) => !outcome.ok && outcome.unavailable)
    this.#lastWriteFailed = failed
    return answers
  }

  /** The store, whose transactions begin with a fold. */
  readonly #foldingStore: SyncStore = {
    run: (sql, params) => this.#store.run(sql, params),
    snapshot: (work) => this.#store.snapshot(work),
    transact: async (work) => {
      const result = await this.#store.transact(() => {
        this.#writeTables()
        return work()
      })
      this.#tablesWritten()
      return result
    },
  }

  async #fold(): Promise<void> {
    if (!this.#isBehind) return
    try {
      await this.#foldingStore.transact(() => {})
    } catch (error) {
      this.#lastWriteFailed = true
      throw error
    }
    if (this.#accounts.size > MAX_ACCOUNTS) this.#accounts.forget()
  }

  /** Whether the memory has something that the tables have not. */
  get #isBehind(): boolean {
    return this.#pending.bills.length > 0 || this.#accounts.isChanged
  }

  #writeTables(): void {
    writeTables(this.#store, this.#accounts, this.#pending.bills)
    this.#journal.empty()
  }

  #tablesWritten(): void {
    this.#pending.clear()
    this.#accounts.written()
    this.#journal.emptied()
    this.#lastWriteFailed = false
  }

  #failed(error: unknown): LedgerOutcome {
    const outcome = failedCall(error)
    if (!outcome.ok && outcome.unavailable) this.#lastWriteFailed = true
    return outcome
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(async () => {
      try {
        return await work()
      } finally {
        this.#foldSoon()
      }
    })
    this.#last = run.catch(() => {})
    return run
  }

  #foldSoon(): void {
    if (this.#isFoldDue || !this.#isBehind) return
    this.#isFoldDue = true
    this.#deps.later(FOLD_AFTER_MS, async () => {
      this.#isFoldDue = false
      // Where it fails, the next one is due a second later.
      await this.fold().catch(() => {})
    })
  }
}

export const openEmbeddedLedger: OpenLedger = (store, deps) => new EmbeddedLedger(store, deps)

function outcomeOf([answer]: readonly SqliteAnswer[]) {
  if (answer === undefined) throw new Error('internal error: a batch was left unanswered')
  return answer.outcome
}

/** Keeps how an operation ended, unless it is undecided. */
function keepOutcome(
  outcomes: Map<LedgerCall, LedgerOutcome>,
  call: LedgerCall,
  operation: () => LedgerOutcome | undefined,
): void {
  try {
    const outcome = operation()
    if (outcome !== undefined) outcomes.set(call, outcome)
  } catch (error) {
    outcomes.set(call, failedCall(error))
  }
}
