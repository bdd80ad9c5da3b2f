import { failedOutcome, rowsOf } from '../storage/batch-outcome.ts'
import { changesAccounts, concernsLedger } from '../storage/concerns-ledger.ts'
import type { Database, Statement } from '../storage/database.ts'
import type {
  AccountCall,
  EvidenceCall,
  FindCall,
  LedgerCall,
  LedgerOutcome,
} from '../storage/ledger-calls.ts'
import type {
  HeldReservation,
  LedgerEngine,
  LedgerEngineDeps,
  OpenLedger,
} from '../storage/ledger-engine.ts'
import { isRead } from '../storage/sql.ts'
import { runBatches, type SqliteAnswer } from '../storage/sqlite-batches.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { Accounts } from './accounts.ts'
import { storeEvidence } from './evidence-storing.ts'
import { FoldSchedule } from './fold-schedule.ts'
import { Folding, type FoldPlan } from './folding.ts'
import { FormerJournal } from './former-journal.ts'
import { JournalSettling } from './journal-settling.ts'
import { Journal } from './journal.ts'
import { carryOutInMemory, find, isInMemory } from './memory-calls.ts'
import { PendingBills } from './pending.ts'
import { SharedFold } from './shared-fold.ts'
import { carryOutBySql } from './sql-calls.ts'
import { bringBack, holdAgain } from './take-over.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** With more of them, those that were read first are forgotten with a fold: memory does not grow with the number of customers. */
const MAX_ACCOUNTS = 20_000

/**
 * The ledger of an engine whose data has one owner: the object or the thread that holds the SQLite database.
 *
 * Accounts are in its memory, so an admission is a function call. The settlements of a moment are one write to the journal.
 * Once a second, once many settlements wait, and before anything else needs the tables, a fold brings them up to the memory
 * and empties the journal, in one transaction. So the tables are always those of an earlier moment, and together with the
 * journal they have everything that was settled. After a crash the journal is read again; what was reserved since the last
 * fold has cost nothing and is gone.
 *
 * What memory does not decide (claims, values at the edge of their range, anything after a write has failed) is carried out
 * by the SQL of all engines, after a fold.
 */
export class EmbeddedLedger implements LedgerEngine {
  readonly #store: SyncStore
  readonly #accounts: Accounts
  readonly #journal: Journal
  readonly #pending: PendingBills
  readonly #settling: JournalSettling
  readonly #folding: Folding
  readonly #schedule: FoldSchedule
  readonly #readersFold: SharedFold
  /** Ends when the work that has come so far has ended. Memory and tables are used by one at a time. */
  #last: Promise<unknown> = Promise.resolve()
  #isAtWork = false
  #lastWriteFailed = false

  constructor(store: SyncStore, { later, foldAt }: LedgerEngineDeps) {
    this.#store = store
    this.#accounts = new Accounts(store)
    this.#journal = new Journal(store)
    this.#pending = new PendingBills(store)
    const parts = {
      store,
      accounts: this.#accounts,
      journal: this.#journal,
      pending: this.#pending,
    }
    const folded = (wrote: boolean) => {
      if (wrote) this.#lastWriteFailed = false
      this.#readersFold.succeeded()
    }
    const makeRoom = () => this.#fold({ leave: true })
    this.#folding = new Folding({ ...parts, folded })
    this.#settling = new JournalSettling({ ...parts, makeRoom })
    this.#schedule = new FoldSchedule({
      later,
      foldAt,
      fold: () => this.#exclusively(makeRoom),
    })
    this.#readersFold = new SharedFold({
      later,
      fold: (begun) =>
        this.#exclusively(() => {
          begun()
          return makeRoom()
        }),
    })
  }

  /** All of it as a database, for maintenance beside it. */
  readonly database: Database = {
    batch: async (statements) => rowsOf(outcomeOf(await this.batches([statements]))),
  }

  /** The tables as a database, whose transactions begin with a fold. */
  readonly #folded: Database = {
    batch: async (statements) =>
      rowsOf(outcomeOf(await this.#write(this.#folding.storeWith({ leave: true }), [statements]))),
  }

  /**
   * Makes the journal at the first start, or reads it. The schema must be up to date.
   * @param held what the memory held that this one follows
   * @throws Error when the journal holds what the tables do not take; what the store throws when it cannot be written
   */
  async open(held: readonly HeldReservation[] = []): Promise<void> {
    const former = new FormerJournal(this.#store)
    const formerTexts = former.read()
    bringBack([...formerTexts, ...this.#journal.read()], this.#accounts, this.#pending)
    // What a former journal holds is in the tables before its rows are gone.
    const store = formerTexts.length > 0 ? this.#folding.storeWith({ leave: false }) : this.#store
    await store.transact(() => {
      former.remove()
      this.#journal.create()
      this.#journal.tryWrite()
    })
    holdAgain(held, this.#accounts, this.#pending)
    this.#foldSoon()
  }

  /**
   * Carries out an operation in memory without waiting for its turn, or changes nothing. That is safe while no other work is
   * under way and the accounts are in memory, because nothing runs meanwhile. A fold must be due:
   * only the store's owner may arrange the next one.
   */
  atOnce(call: LedgerCall): LedgerOutcome | undefined {
    if (call.kind === 'settle' || call.kind === 'evidence') return undefined
    if (call.kind === 'find') {
      return isInMemory(this.#accounts, call) ? find(this.#accounts, call) : undefined
    }
    if (this.#isAtWork || this.#lastWriteFailed || !this.#schedule.isDue) return undefined
    return isInMemory(this.#accounts, call) ? carryOutInMemory(this.#accounts, call) : undefined
  }

  /**
   * Also what the settlements held that are not in the tables: of those whose commit failed with the answer, nothing is stored. The
   * others are in the journal, and `open` reserves nothing for them.
   */
  held(): readonly HeldReservation[] {
    return [...this.#accounts.held(), ...this.#pending.held()]
  }

  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    return this.#exclusively(async () => {
      const { finds, evidence, ofAccounts } = divided(calls)
      const outcomes: Outcomes = new Map()
      for (const call of finds) outcomes.set(call, find(this.#accounts, call))
      if (!this.#lastWriteFailed) {
        this.#decideInMemory(ofAccounts, outcomes)
        const settlements = ofAccounts.filter((call) => call.kind === 'settle')
        this.#note(await this.#settling.settle(settlements), outcomes)
      }
      this.#note(await storeEvidence(this.#store, this.#accounts, evidence), outcomes)
      await this.#decideBySql(ofAccounts, outcomes)
      return calls.map((call) => outcomes.get(call) ?? unanswered())
    })
  }

  /** Runs batches of SQL, which see everything that was settled and reserved before. Never throws for what SQL did. */
  async batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    if (!batches.every((batch) => batch.every(isRead))) {
      return this.#exclusively(() => this.#writeAndForget(batches))
    }
    if (!batches.some((batch) => batch.some(concernsLedger)))
      return runBatches(this.#store, batches)
    try {
      await this.fold()
    } catch (error) {
      const outcome = failedOutcome(messageOfThrown(error), false)
      return batches.map(() => ({ outcome, wrote: false }))
    }
    return runBatches(this.#store, batches)
  }

  /** Whether the memory has something that the tables have not. */
  get isBehind(): boolean {
    return this.#folding.isBehind
  }

  /** Brings the tables up to the memory. @throws what the store throws; nothing is lost then */
  async fold(): Promise<void> {
    if (this.isBehind) await this.#readersFold.run()
  }

  #decideInMemory(calls: readonly AccountCall[], outcomes: Outcomes): void {
    for (const call of calls) {
      if (call.kind === 'settle') continue
      const outcome = carryOutInMemory(this.#accounts, call)
      if (outcome !== undefined) outcomes.set(call, outcome)
    }
  }

  /** Carries out what is undecided, in the order in which it came. */
  async #decideBySql(calls: readonly AccountCall[], outcomes: Outcomes): Promise<void> {
    for (const call of calls) {
      if (outcomes.has(call)) continue
      // One transaction after another.
      outcomes.set(call, await carryOutBySql(this.#folded, this.#accounts, call))
    }
  }

  /** Adds the outcomes of operations that were written. */
  #note(written: ReadonlyMap<LedgerCall, LedgerOutcome>, outcomes: Outcomes): void {
    for (const [call, outcome] of written) {
      outcomes.set(call, outcome)
      if (!outcome.ok && outcome.unavailable) this.#lastWriteFailed = true
    }
  }

  /** Runs batches of other parts of the program, of which at least one writes. */
  async #writeAndForget(batches: readonly (readonly Statement[])[]) {
    const concerned = batches.some((batch) => batch.some(concernsLedger))
    if (!concerned) return this.#write(this.#store, batches)
    const answers = await this.#write(this.#folding.storeWith({ leave: false }), batches)
    for (const [index, { wrote }] of answers.entries()) {
      if (wrote) this.#forgetChangedBy(batches[index] ?? [])
    }
    return answers
  }

  /** A statement that is no customer's may have changed the account of any. */
  #forgetChangedBy(batch: readonly Statement[]): void {
    for (const { customerId } of batch.filter(changesAccounts)) {
      if (customerId === undefined) return this.#accounts.forgetAll()
      this.#accounts.forget(customerId)
    }
  }

  async #write(store: SyncStore, batches: readonly (readonly Statement[])[]) {
    const answers = await runBatches(store, batches)
    const failed = answers.some(({ outcome }) => !outcome.ok && outcome.unavailable)
    // What changed nothing needed no room, and says nothing about a disk that was full.
    if (failed || answers.some(({ wrote }) => wrote)) this.#lastWriteFailed = failed
    return answers
  }

  async #fold(plan: FoldPlan): Promise<void> {
    try {
      await this.#folding.fold(plan)
    } catch (error) {
      this.#lastWriteFailed = true
      throw error
    }
    if (this.#hasTooMany) this.#accounts.forgetEarliest(MAX_ACCOUNTS / 4)
  }

  /** Whether accounts must be forgotten. Looking up keys alone reads them, too. */
  get #hasTooMany(): boolean {
    return this.#accounts.size > MAX_ACCOUNTS
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(async () => {
      this.#isAtWork = true
      try {
        return await work()
      } finally {
        this.#isAtWork = false
        this.#foldSoon()
      }
    })
    this.#last = run.catch(() => {})
    return run
  }

  #foldSoon(): void {
    const isNeeded = this.#folding.hasToWrite || this.#hasTooMany
    if (isNeeded) this.#schedule.arrange(this.#pending.bills.length)
  }
}

export const openEmbeddedLedger: OpenLedger = (store, deps) => new EmbeddedLedger(store, deps)

function outcomeOf([answer]: readonly SqliteAnswer[]) {
  if (answer === undefined) throw new Error('internal error: a batch was left unanswered')
  return answer.outcome
}

type Outcomes = Map<LedgerCall, LedgerOutcome>

/** Operations that arrived together, by kind, each kind in the order in which they came. */
function divided(calls: readonly LedgerCall[]) {
  const finds: FindCall[] = []
  const evidence: EvidenceCall[] = []
  const ofAccounts: AccountCall[] = []
  for (const call of calls) {
    if (call.kind === 'find') finds.push(call)
    else if (call.kind === 'evidence') evidence.push(call)
    else ofAccounts.push(call)
  }
  return { finds, evidence, ofAccounts }
}

function unanswered(): never {
  throw new Error('internal error: an operation was left unanswered')
}
