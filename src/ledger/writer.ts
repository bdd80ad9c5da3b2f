import { EmbeddedLedger } from '../worker/embedded/embedded-ledger.ts'
import { sweep } from '../worker/settle/sweep.ts'
import { failedOutcome } from '../worker/storage/batch-outcome.ts'
import { SWEEP_AFTER_WRITE_MS, type Statement } from '../worker/storage/database.ts'
import {
  failedCall,
  haveChanged,
  type LedgerCall,
  type LedgerOutcome,
} from '../worker/storage/ledger-calls.ts'
import { migrate } from '../worker/storage/migrate.ts'
import { SQLITE_MIGRATIONS } from '../worker/storage/migrations.ts'
import { sqliteDatabase, type SqliteAnswer } from '../worker/storage/sqlite-batches.ts'
import { Gathered } from './gathered.ts'
import { openReservations, ReservationLog } from './reservation-log.ts'
import { openForWriting, type SqliteFile } from './sqlite-file.ts'
import { SweepTimer } from './sweep-timer.ts'

/**
 * Operations, batches or folds of one transaction. A longer transaction would delay the calls that wait for the next round;
 * one worker call carries at most 4 MiB of them.
 */
const MAX_CALLS = 64

/**
 * Settlements after which the engine folds. A fold changes pages of two indexes for nearly every customer served since the
 * last fold, so a larger fold costs less per settlement: with 100 customers, a fold of 1,024 costs two thirds per settlement
 * of one of 256. All other work waits for the fold, some 30 ms.
 */
const FOLD_AT = 1_024

/**
 * The one writer of a ledger: the engine that a Durable Object has, over a file of this process. Calls of all workers that
 * arrive in one event loop turn, or during a commit, form the next round and share its commits to the disk.
 */
export class Writer {
  readonly #file: SqliteFile
  readonly #now: () => number
  readonly #engine: EmbeddedLedger
  readonly #reservations: ReservationLog
  readonly #sweeps: SweepTimer
  readonly #operations = new Gathered<LedgerCall, LedgerOutcome>()
  readonly #batches = new Gathered<readonly Statement[], SqliteAnswer>()
  readonly #folds = new Gathered<() => Promise<void>, boolean>()
  /** Whether a round is running, or is scheduled for the end of this event loop turn. Rounds never overlap. */
  #hasRound = false
  #isClosed = false

  private constructor(
    file: SqliteFile,
    engine: EmbeddedLedger,
    reservations: ReservationLog,
    now: () => number,
  ) {
    this.#file = file
    this.#engine = engine
    this.#reservations = reservations
    this.#now = now
    this.#sweeps = new SweepTimer(() => this.#sweep(), now)
  }

  /**
   * Opens the database, applies the schema, and restores the reservations that the previous process held only in memory.
   * @param now ms since the epoch
   * @throws Error when it cannot be opened
   */
  static async open(path: string, now: () => number): Promise<Writer> {
    const file = openForWriting(path)
    await migrate(sqliteDatabase(file), SQLITE_MIGRATIONS)
    const engine: EmbeddedLedger = new EmbeddedLedger(file, {
      later: (ms, work) => writer.#later(ms, work),
      foldAt: FOLD_AT,
    })
    const log = `${path}.reservations`
    const held = openReservations(log)
    const writer: Writer = new Writer(file, engine, new ReservationLog(log), now)
    await engine.open(held)
    // This commits every restored reservation to the tables, so that the log can be cleared.
    await engine.fold()
    writer.#reservations.clear()
    writer.#sweeps.begin()
    return writer
  }

  /** Closes the files. The journal holds what the tables do not have yet. */
  close(): void {
    this.#isClosed = true
    this.#sweeps.stop()
    this.#reservations.close()
    this.#file.close()
  }

  /** Carries out operations, and commits them together. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    return this.#next(this.#operations.add(calls))
  }

  /** Runs batches of SQL, and commits them together. */
  batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    return this.#next(this.#batches.add(batches))
  }

  /**
   * Brings the tables up to date for the readers.
   * @returns false where the tables cannot be written
   */
  async fold(): Promise<boolean> {
    return this.#foldBy(() => this.#engine.fold())
  }

  #later(ms: number, work: () => Promise<void>): void {
    setTimeout(() => {
      if (!this.#isClosed) void this.#foldBy(work)
    }, ms)
  }

  async #foldBy(work: () => Promise<void>): Promise<boolean> {
    const [done = false] = await this.#next(this.#folds.add([work]))
    return done
  }

  #next<Answers>(answers: Promise<Answers>): Promise<Answers> {
    if (!this.#hasRound) {
      this.#hasRound = true
      setImmediate(() => void this.#round())
    }
    return answers
  }

  /** Folds last: a reader that asked for a fold then finds everything that was confirmed before. */
  async #round(): Promise<void> {
    await this.#operations.carryOut(MAX_CALLS, (calls) => this.#operate(calls))
    await this.#batches.carryOut(MAX_CALLS, (batches) => this.#run(batches))
    await this.#folds.carryOut(MAX_CALLS, (due) => this.#foldDue(due))
    this.#hasRound = false
    const waiting = [this.#operations, this.#batches, this.#folds].some(({ isEmpty }) => !isEmpty)
    if (waiting) void this.#next(Promise.resolve())
  }

  async #operate(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    const now = this.#now()
    const due = calls.filter((call) => !isTooLate(call, now))
    const made = await this.#engine.operations(due)
    if (haveChanged(made)) this.#sweeps.written()
    const outcomes = this.#noted(due, made)
    if (due.length === calls.length) return outcomes
    const byCall = new Map(due.map((call, index) => [call, outcomes[index]]))
    return calls.map((call) => byCall.get(call) ?? TOO_LATE)
  }

  async #run(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    const answers = await this.#engine.batches(batches)
    if (answers.some(({ wrote }) => wrote)) this.#sweeps.written()
    return answers
  }

  async #foldDue(due: readonly (() => Promise<void>)[]): Promise<readonly boolean[]> {
    const done: boolean[] = []
    for (const work of due) {
      // The first fold writes everything; the others find nothing to do.
      done.push(await hasSucceeded(work()))
    }
    // After a failed fold the log keeps the reservations, and the engine tries again.
    if (!this.#engine.isBehind) this.#reservations.clear()
    return done
  }

  /**
   * Runs a round of maintenance. After the last round that was due, empties the write-ahead log, so that erased bytes are
   * not left there either.
   */
  async #sweep(): Promise<{ readonly next: number | undefined }> {
    const { next = Number.POSITIVE_INFINITY } = await sweep(this.#engine.database, this.#now())
    const retryAt = this.#now() + SWEEP_AFTER_WRITE_MS
    const emptied = next <= this.#now() || this.#file.emptyLog()
    const at = emptied ? next : Math.min(next, retryAt)
    return { next: Number.isFinite(at) ? at : undefined }
  }

  /** Turns admissions into failures where they cannot be written to the log; the worker then releases them. */
  #noted(
    calls: readonly LedgerCall[],
    outcomes: readonly LedgerOutcome[],
  ): readonly LedgerOutcome[] {
    try {
      this.#reservations.note(calls, outcomes)
      return outcomes
    } catch (error) {
      return outcomes.map((outcome) =>
        outcome.ok && outcome.kind === 'admit' ? failedCall(error) : outcome,
      )
    }
  }
}

/**
 * The answer to a settlement after its deadline (`until`). Its caller has given up: it tries again, or has withheld the
 * answer to its client.
 */
const TOO_LATE = failedOutcome('the settlement came too late', false)

function isTooLate(call: LedgerCall, now: number): boolean {
  return call.kind === 'settle' && call.until !== undefined && now > call.until
}

function hasSucceeded(work: Promise<void>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  )
}
