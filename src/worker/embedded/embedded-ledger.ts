import { sqlLedger } from '../settle/sql-ledger.ts'
import { failedOutcome, messageOf, rowsOf } from '../storage/batch-outcome.ts'
import { changesAccounts, concernsLedger } from '../storage/concerns-ledger.ts'
import type { Database, Statement } from '../storage/database.ts'
import {
  carryOut,
  failedCall,
  type AccountCall,
  type FailedCall,
  type LedgerCall,
  type LedgerOutcome,
} from '../storage/ledger-calls.ts'
import type { HeldReservation, LedgerEngine, OpenLedger } from '../storage/ledger-engine.ts'
import { isRead } from '../storage/sql.ts'
import { runBatches, type SqliteAnswer } from '../storage/sqlite-batches.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { Accounts } from './accounts.ts'
import { admitInMemory, BY_SQL, findInMemory } from './admission.ts'
import { writeTables } from './fold.ts'
import { FormerJournal } from './former-journal.ts'
import { storeEvidence, type EvidenceCall } from './evidence-storing.ts'
import { Journal } from './journal.ts'
import { JournalSettling, type SettleCall } from './journal-settling.ts'
import { PendingBills } from './pending.ts'
import { bringBack, holdAgain } from './take-over.ts'

/** How long what was settled and reserved may wait for the tables, ms. */
const FOLD_AFTER_MS = 1_000

/**
 * So many settlements do not wait that long: everything else waits while a fold runs, for about a tenth of a millisecond
 * with each of them.
 */
const MANY_BILLS = 256

/** With more of them, those that were read first are forgotten with a fold: memory does not grow with the number of customers. */
const MAX_ACCOUNTS = 20_000

type FindCall = Extract<LedgerCall, { kind: 'find' }>

/** `leave`: whether the journal may keep the entries that are folded until they are written over, or the next fold. */
interface FoldPlan {
  readonly leave: boolean
}

/**
 * The ledger of an engine whose data has one owner: the object or the thread that holds the SQLite database.
 *
 * Accounts are in its memory, so an admission is a function call. The settlements of a moment are one write to the journal.
 * Once a second, once many settlements wait, and before anything else needs the tables, a fold brings them up to the memory and empties the journal, in
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
  readonly #settling: JournalSettling
  /** Ends when the work that has come so far has ended. Memory and tables are used by one at a time. */
  #last: Promise<unknown> = Promise.resolve()
  #isFoldDue = false
  /** Whether a fold was begun early, and has not succeeded. */
  #isFoldEarly = false
  #isAtWork = false
  #lastWriteFailed = false

  constructor(store: SyncStore, deps: Parameters<OpenLedger>[1]) {
    this.#store = store
    this.#deps = deps
    this.#accounts = new Accounts(store)
    this.#journal = new Journal(store)
    this.#pending = new PendingBills(store)
    const [accounts, journal, pending] = [this.#accounts, this.#journal, this.#pending]
    const makeRoom = () => this.#fold({ leave: true })
    this.#settling = new JournalSettling({ store, accounts, journal, pending, makeRoom })
  }

  /** All of it as a database, for maintenance beside it. */
  readonly database: Database = {
    batch: async (statements) => rowsOf(outcomeOf(await this.batches([statements]))),
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
    const store = formerTexts.length > 0 ? this.#folding({ leave: false }) : this.#store
    await store.transact(() => {
      former.remove()
      this.#journal.create()
      this.#journal.tryWrite()
    })
    holdAgain(held, this.#accounts, this.#pending)
    this.#foldSoon()
  }

  /**
   * Carries out an operation in memory, outside of the turns of all others, or changes nothing. That needs no turn of its own
   * while no other work is under way and the accounts are in memory, because nothing runs meanwhile. A fold must be due:
   * only the store's owner may arrange the next one.
   */
  atOnce(call: LedgerCall): LedgerOutcome | undefined {
    if (call.kind === 'find') return this.#isInMemory(call) ? this.#find(call) : undefined
    if (call.kind === 'evidence' || this.#isAtWork || !this.#isFoldDue || !this.#isInMemory(call))
      return undefined
    return outcomeIn(() => this.#inMemory(call))
  }

  held(): readonly HeldReservation[] {
    return this.#accounts.held()
  }

  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    return this.#exclusively(async () => {
      const outcomes = new Map<LedgerCall, LedgerOutcome>()
      const settlements: SettleCall[] = []
      const evidence: EvidenceCall[] = []
      for (const call of calls) {
        if (call.kind === 'settle') settlements.push(call)
        else if (call.kind === 'evidence') evidence.push(call)
        else if (call.kind === 'find') outcomes.set(call, this.#find(call))
        else {
          const outcome = outcomeIn(() => this.#inMemory(call))
          if (outcome !== undefined) outcomes.set(call, outcome)
        }
      }
      if (!this.#lastWriteFailed) {
        const settled = await this.#settling.settle(settlements)
        for (const [call, outcome] of settled) outcomes.set(call, outcome)
        if ([...settled.values()].some(isUnavailable)) this.#lastWriteFailed = true
      }
      const stored = await storeEvidence(this.#store, this.#accounts, evidence)
      for (const [call, outcome] of stored) outcomes.set(call, outcome)
      if ([...stored.values()].some(isUnavailable)) this.#lastWriteFailed = true
      const answers: LedgerOutcome[] = []
      for (const call of calls) answers.push(outcomes.get(call) ?? (await this.#bySql(call)))
      return answers
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
      const outcome = failedOutcome(messageOf(error), false)
      return batches.map(() => ({ outcome, wrote: false }))
    }
    return runBatches(this.#store, batches)
  }

  /** Brings the tables up to the memory. @throws what the store throws; nothing is lost then */
  async fold(): Promise<void> {
    if (this.#isBehind) await this.#exclusively(() => this.#fold({ leave: true }))
  }

  /** Whether all that an operation needs has been read. */
  #isInMemory(
    call: Exclude<LedgerCall, EvidenceCall>,
  ): call is Exclude<LedgerCall, SettleCall | EvidenceCall> {
    if (call.kind === 'settle') return false
    if (call.kind === 'release') return this.#accounts.knownHolderOf(call.requestId) !== undefined
    const { customerId, keyPrefix } = call.kind === 'find' ? call.key : call.entry.key
    return this.#accounts.knowsKey(customerId, keyPrefix)
  }

  /** Memory and tables together always know: what is not in memory is in the tables as it was written last. */
  #find({ key: presented }: FindCall): LedgerOutcome {
    return outcomeIn(() => {
      const found = findInMemory(this.#accounts, presented)
      if (found === undefined) return { ok: true, kind: 'find', facts: null }
      const { name: keyName, expiresAt } = found.key
      const facts = { keyName, expiresAt, secretEndsAt: found.secretEndsAt }
      return { ok: true, kind: 'find', facts }
    })
  }

  #inMemory(call: Exclude<AccountCall, SettleCall>): LedgerOutcome | undefined {
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

  async #bySql(call: LedgerCall): Promise<LedgerOutcome> {
    if (call.kind === 'find' || call.kind === 'evidence')
      throw new Error('internal error: an operation was left undecided')
    const ledger = sqlLedger({
      batch: async (batch) =>
        rowsOf(outcomeOf(await this.#write(this.#folding({ leave: true }), [batch]))),
    })
    try {
      // An operation changes the account of its customer, and that of whoever holds its reservation.
      const holder = this.#accounts.holderOf(requestIdOf(call))
      const outcome = await carryOut(ledger, call)
      for (const customerId of [customerOf(call), holder?.customerId]) {
        if (customerId !== undefined) this.#accounts.forget(customerId)
      }
      if (call.kind === 'settle') this.#accounts.noteSettled(call.entry)
      return outcome
    } catch (error) {
      // What the transaction would have changed is as it was.
      return failedCall(error)
    }
  }

  /** Runs batches of other parts of the program, of which at least one writes. */
  async #writeAndForget(batches: readonly (readonly Statement[])[]) {
    const concerned = batches.some((batch) => batch.some(concernsLedger))
    if (!concerned) return this.#write(this.#store, batches)
    const answers = await this.#write(this.#folding({ leave: false }), batches)
    for (const [index, { wrote }] of answers.entries()) {
      if (wrote) this.#forgetChangedBy(batches[index] ?? [])
    }
    return answers
  }

  /** Where a statement does not name its customer, it may have changed the account of any. */
  #forgetChangedBy(batch: readonly Statement[]): void {
    for (const { customerId, params } of batch.filter(changesAccounts)) {
      if (customerId === undefined || !params.includes(customerId))
        return this.#accounts.forgetAll()
      this.#accounts.forget(customerId)
    }
  }

  async #write(store: SyncStore, batches: readonly (readonly Statement[])[]) {
    const answers = await runBatches(store, batches)
    this.#lastWriteFailed = answers.some(({ outcome }) => !outcome.ok && outcome.unavailable)
    return answers
  }

  /** The store, whose transactions begin with a fold. */
  #folding({ leave }: FoldPlan): SyncStore {
    return {
      run: (sql, params) => this.#store.run(sql, params),
      snapshot: (work) => this.#store.snapshot(work),
      transact: async (work) => {
        const result = await this.#store.transact(() => {
          writeTables(this.#store, this.#accounts, this.#pending.bills)
          this.#journal.fold(leave)
          return work()
        })
        this.#tablesWritten()
        return result
      },
    }
  }

  async #fold(plan: FoldPlan): Promise<void> {
    try {
      if (this.#hasToWrite) await this.#folding(plan).transact(() => {})
    } catch (error) {
      this.#lastWriteFailed = true
      throw error
    }
    if (this.#hasTooMany) this.#accounts.forgetEarliest(MAX_ACCOUNTS / 4)
  }

  /** Whether the memory has something that the tables have not. */
  get #isBehind(): boolean {
    return this.#pending.bills.length > 0 || this.#accounts.isChanged
  }

  get #hasToWrite(): boolean {
    return this.#isBehind || this.#journal.hasLeftovers
  }

  /** Whether accounts must be forgotten. Looking up keys alone reads them, too. */
  get #hasTooMany(): boolean {
    return this.#accounts.size > MAX_ACCOUNTS
  }

  #tablesWritten(): void {
    this.#pending.clear()
    this.#accounts.written()
    this.#journal.folded()
    this.#lastWriteFailed = false
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
    if (!this.#hasToWrite && !this.#hasTooMany) return
    if (!this.#isFoldDue) {
      this.#isFoldDue = true
      this.#deps.later(FOLD_AFTER_MS, async () => {
        this.#isFoldDue = false
        this.#isFoldEarly = false
        // Where it fails, the next one is due a second later.
        await this.#exclusively(() => this.#fold({ leave: true })).catch(() => {})
      })
    }
    if (this.#isFoldEarly || this.#pending.bills.length < MANY_BILLS) return
    this.#isFoldEarly = true
    // After the answers of those that have come so far.
    this.#deps.later(0, () =>
      this.#exclusively(() => this.#fold({ leave: true })).then(
        () => void (this.#isFoldEarly = false),
        () => {},
      ),
    )
  }
}

export const openEmbeddedLedger: OpenLedger = (store, deps) => new EmbeddedLedger(store, deps)

function outcomeOf([answer]: readonly SqliteAnswer[]) {
  if (answer === undefined) throw new Error('internal error: a batch was left unanswered')
  return answer.outcome
}

function requestIdOf(call: AccountCall): string {
  return call.kind === 'release' ? call.requestId : call.entry.requestId
}

function customerOf(call: AccountCall): string | undefined {
  if (call.kind === 'release') return undefined
  return call.kind === 'admit' ? call.entry.key.customerId : call.entry.customerId
}

function isUnavailable(outcome: LedgerOutcome): boolean {
  return !outcome.ok && outcome.unavailable
}

/** How an operation ended; undefined: it is undecided. */
function outcomeIn<Outcome extends LedgerOutcome | undefined>(
  operation: () => Outcome,
): Outcome | FailedCall {
  try {
    return operation()
  } catch (error) {
    return failedCall(error)
  }
}
