import { EmbeddedLedger } from '../worker/embedded/embedded-ledger.ts'
import { sweep } from '../worker/settle/sweep.ts'
import { SWEEP_AFTER_WRITE_MS, type Statement } from '../worker/storage/database.ts'
import { failedCall, type LedgerCall, type LedgerOutcome } from '../worker/storage/ledger-calls.ts'
import { migrate } from '../worker/storage/migrate.ts'
import { SQLITE_MIGRATIONS } from '../worker/storage/migrations.ts'
import { sqliteDatabase, type SqliteAnswer } from '../worker/storage/sqlite-batches.ts'
import { openReservations, ReservationLog } from './reservation-log.ts'
import { openForWriting, type SqliteFile } from './sqlite-file.ts'
import { SweepTimer } from './sweep-timer.ts'

/** The one writer of a ledger: the engine that a Durable Object has, over a file of this process. */
export class Writer {
  readonly #file: SqliteFile
  readonly #now: () => number
  readonly #engine: EmbeddedLedger
  readonly #reservations: ReservationLog
  readonly #sweeps: SweepTimer
  /** Ends when the work that has come so far has ended: a note and its clearing must not cross. */
  #last: Promise<unknown> = Promise.resolve()

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
      later: (ms, work) => void setTimeout(() => void writer.#foldNow(work), ms),
    })
    const log = `${path}.reservations`
    const held = openReservations(log)
    const writer: Writer = new Writer(file, engine, new ReservationLog(log), now)
    await engine.open(held)
    // One commit for all of them, after which the log has nothing that the tables have not.
    await writer.#fold()
    writer.#sweeps.begin()
    return writer
  }

  /** Carries out operations, and commits them together. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
    return this.#inTurn(async () => {
      const outcomes = await this.#engine.operations(calls)
      if (outcomes.some(({ ok }) => ok)) this.#sweeps.written()
      return this.#noted(calls, outcomes)
    })
  }

  /** Runs batches, and commits them together. */
  batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]> {
    return this.#inTurn(async () => {
      const answers = await this.#engine.batches(batches)
      if (answers.some(({ wrote }) => wrote)) this.#sweeps.written()
      return answers
    })
  }

  /** Brings the tables up to date for readers. @throws Error when they cannot be written */
  fold(): Promise<void> {
    return this.#inTurn(() => this.#fold())
  }

  async #fold(): Promise<void> {
    await this.#engine.fold()
    this.#reservations.clear()
  }

  #foldNow(due: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      await due()
      // Where it fails, the reservations stay noted, and the engine tries again.
      await this.#fold().catch(() => {})
    })
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

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(work)
    this.#last = run.catch(() => {})
    return run
  }
}
