import type { Database, Statement } from './database.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { SqliteAnswer } from './sqlite-batches.ts'
import type { SyncStore } from './sync-store.ts'

/** What owns a SQLite database and keeps the ledger in it (`embedded/embedded-ledger.ts`). */
export interface LedgerEngine {
  /** The same as a database, for maintenance beside it. */
  readonly database: Database
  /**
   * Prepares it for its first operation. The schema must be up to date.
   * @param held what an engine held whose place this one takes
   */
  open(held?: readonly HeldReservation[]): Promise<void>
  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]>
  /**
   * Carries out an operation in memory, without any I/O, so that a request of the same isolate may ask for it in its own
   * context. Undefined: it cannot be decided so, and nothing was changed. Never throws.
   */
  atOnce(call: LedgerCall): LedgerOutcome | undefined
  /** The open reservations in its memory, and those of requests whose settlement may not have been committed. */
  held(): readonly HeldReservation[]
  /** Runs batches, which see all operations that were answered. Never throws for what SQL did. */
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
  /** How many settlements go into the tables at once, without waiting for the time that fewer wait; absent: the engine's own number. */
  readonly foldAt?: number
}

/** Makes the engine for a store. */
export type OpenLedger = (store: SyncStore, deps: LedgerEngineDeps) => LedgerEngine
