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

/**
 * Maximum number of accounts in memory, so that memory does not grow with the number of customers. Above it, a fold is
 * followed by forgetting those that were read first.
 */
const MAX_ACCOUNTS = 20_000

/**
 * The ledger of an engine with one owner: the Durable Object or process that holds the SQLite database.
 *
 * Accounts are in its memory, so an admission is a function call. Settlements that arrive together are one write to the
 * journal. A fold brings the tables up to date with the memory and empties the journal, in one transaction: once a second,
 * as soon as many settlements wait, and before other code needs the tables. So the tables always hold a consistent earlier
 * state, and tables and journal together hold everything that was settled. After a crash the journal is read again;
 * reservations since the last fold are lost, but they have cost nothing.
 *
 * What the memory does not decide (claims, values at the limit of their range, anything after a failed write) is carried out
 * by the SQL that all engines share, after a fold.
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
  /** Settles when all work queued so far has ended: only one piece of work at a time may use memory and tables. */
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

  /** Memory and tables together as a database, for maintenance. */
  readonly database: Database = {
    batch: async (statements) => rowsOf(outcomeOf(await this.batches([statements]))),
  }

  /** The tables as a database; each of its transactions begins with a fold. */
  readonly #folded: Database = {
    batch: async (statements) =>
      rowsOf(outcomeOf(await this.#write(this.#folding.storeWith({ leave: true }), [statements]))),
  }

  /**
   * Creates the journal at the first start; otherwise reads it, and restores what it holds. The schema must be up to date.
   * @param held the reservations that the previous ledger held only in memory
   * @throws Error when the tables would not accept a settlement of the journal; what the store throws when it cannot be
   *   written
   */
  async open(held: readonly HeldReservation[] = []): Promise<void> {
    const former = new FormerJournal(this.#store)
    const formerTexts = former.read()
    bringBack([...formerTexts, ...this.#journal.read()], this.#accounts, this.#pending)
    // The settlements of a former journal must be in the tables before its rows are deleted.
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
   * Carries out an operation in memory without queueing, or changes nothing and returns undefined. This is safe only while
   * no other work is running and the accounts are in memory: then it runs synchronously. A fold must already be scheduled,
   * because only the store's owner may schedule the next one.
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
   * Includes the reservations of settlements that are not in the tables yet: if the runtime fails the commit of such a
   * settlement together with its answer, nothing of it is stored. If it was committed, `open` finds it in the journal and
   * restores no reservation for it.
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

  /**
   * Runs batches of SQL, which see everything that was settled and reserved before. Errors of SQL are outcomes, not
   * exceptions.
   */
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

  /** Whether the memory has changes that are not in the tables. */
  get isBehind(): boolean {
    return this.#folding.isBehind
  }

  /**
   * Brings the tables up to date with the memory.
   * @throws what the store throws; nothing is lost then
   */
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

  /** Carries out by SQL the operations that have no outcome yet, in the order in which they arrived. */
  async #decideBySql(calls: readonly AccountCall[], outcomes: Outcomes): Promise<void> {
    for (const call of calls) {
      if (outcomes.has(call)) continue
      // Sequentially, because transactions must not overlap.
      outcomes.set(call, await carryOutBySql(this.#folded, this.#accounts, call))
    }
  }

  /** Adds the outcomes of operations that were written to the store. */
  #note(written: ReadonlyMap<LedgerCall, LedgerOutcome>, outcomes: Outcomes): void {
    for (const [call, outcome] of written) {
      outcomes.set(call, outcome)
      if (!outcome.ok && outcome.unavailable) this.#lastWriteFailed = true
    }
  }

  /**
   * Runs batches of other parts of the program, at least one of which writes, and forgets the accounts that they may have
   * changed.
   */
  async #writeAndForget(batches: readonly (readonly Statement[])[]) {
    const concerned = batches.some((batch) => batch.some(concernsLedger))
    if (!concerned) return this.#write(this.#store, batches)
    const answers = await this.#write(this.#folding.storeWith({ leave: false }), batches)
    for (const [index, { wrote }] of answers.entries()) {
      if (wrote) this.#forgetChangedBy(batches[index] ?? [])
    }
    return answers
  }

  /** Forgets the accounts that a batch may have changed: all of them where a statement names no customer. */
  #forgetChangedBy(batch: readonly Statement[]): void {
    for (const { customerId } of batch.filter(changesAccounts)) {
      if (customerId === undefined) return this.#accounts.forgetAll()
      this.#accounts.forget(customerId)
    }
  }

  async #write(store: SyncStore, batches: readonly (readonly Statement[])[]) {
    const answers = await runBatches(store, batches)
    const failed = answers.some(({ outcome }) => !outcome.ok && outcome.unavailable)
    // A batch that changed nothing says nothing about whether the disk is full.
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

  /** Whether accounts must be forgotten. Key look-ups read accounts, too, without anything to fold. */
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
