import type { Database, Statement } from './database.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { SqliteAnswer } from './sqlite-batches.ts'
import type { SyncStore } from './sync-store.ts'

/** A ledger engine that owns a SQLite database (`embedded/embedded-ledger.ts`). */
export interface LedgerEngine {
  /** The ledger as a database, for maintenance. */
  readonly database: Database
  /**
   * Prepares the engine for its first operation. The schema must be up to date.
   * @param held the reservations that the engine's predecessor held in memory
   */
  open(held?: readonly HeldReservation[]): Promise<void>
  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]>
  /**
   * Carries out an operation in memory, without any I/O, so that a request of the same isolate may call it in its own
   * context. Never throws.
   * @returns undefined where memory cannot decide it now; nothing is changed then
   */
  atOnce(call: LedgerCall): LedgerOutcome | undefined
  /**
   * The open reservations in the engine's memory, including those of requests whose settlement may not have been committed.
   */
  held(): readonly HeldReservation[]
  /** Runs batches, which see the effects of all answered operations. Errors of SQL are outcomes, not exceptions. */
  batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]>
}

/** An open reservation in the memory of an engine; money is nano-EUR, times are ms since the epoch. */
export interface HeldReservation {
  readonly requestId: string
  readonly customerId: string
  readonly keyPrefix: string
  readonly amount: bigint
  readonly createdAt: number
  readonly expiresAt: number
}

export interface LedgerEngineDeps {
  /** Runs work after a time in ms. */
  readonly later: (ms: number, work: () => Promise<void>) => void
  /**
   * The number of settlements after which a fold runs at once instead of waiting for its time; absent: the engine's default.
   */
  readonly foldAt?: number
}

/** Creates the engine for a store. */
export type OpenLedger = (store: SyncStore, deps: LedgerEngineDeps) => LedgerEngine
