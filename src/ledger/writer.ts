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

/** A transaction delays those who come after it; a call of a worker is at most 4 MiB of them. */
const MAX_CALLS = 64

/**
 * A fold changes pages of two indexes for nearly every customer that was served since the last one, so the more settlements share
 * it, the less each costs: with 1,024 of 100 customers two thirds of what it costs with 256. Everything else waits meanwhile, for some 30 ms of work.
 */
const FOLD_AT = 1_024

/**
 * The one writer of a ledger: the engine that a Durable Object has, over a file of this process. What all workers sent in
 * one moment, or while it committed, is its next round, so that they wait for the disk together.
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
  /** Whether a round goes on, or begins once what has arrived is read. Rounds never overlap. */
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
   * Opens the database, applies the schema, and brings back what was in the memory of a process before this one.
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
    // One commit for all of them, after which the log has nothing that the tables have not.
    await engine.fold()
    writer.#reservations.clear()
    writer.#sweeps.begin()
    return writer
  }

  /** Lets go of the files. What the tables do not have yet is in the journal. */
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

  /** Runs batches, and commits them together. */
  batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    return this.#next(this.#batches.add(batches))
  }

  /** Brings the tables up to date for readers; returns false where they cannot be written. */
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

  /** Folds last, so that a reader that asked for a fold finds everything that was confirmed before its answer. */
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
      // One fold at most, after which the others have nothing to do.
      done.push(await hasSucceeded(work()))
    }
    // Where a fold fails, the reservations stay noted, and the engine tries again.
    if (!this.#engine.isBehind) this.#reservations.clear()
    return done
  }

  /** A round of maintenance. After the last one that was due, what it erased is not in the write-ahead log either. */
  async #sweep(): Promise<{ readonly next: number | undefined }> {
    const { next = Number.POSITIVE_INFINITY } = await sweep(this.#engine.database, this.#now())
    const retryAt = this.#now() + SWEEP_AFTER_WRITE_MS
    const emptied = next <= this.#now() || this.#file.emptyLog()
    const at = emptied ? next : Math.min(next, retryAt)
    return { next: Number.isFinite(at) ? at : undefined }
  }

  /** An admission that cannot be noted has not happened: the worker releases it. */
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

/** Its caller has given up, and tries again or has withheld what it is for. */
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
