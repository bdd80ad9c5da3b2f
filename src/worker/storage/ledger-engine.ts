import type { Database, Statement } from './database.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { SqliteAnswer } from './sqlite-batches.ts'
import type { SyncStore } from './sync-store.ts'

/** What owns a SQLite database and keeps the ledger in it (`embedded/embedded-ledger.ts`). */
export interface LedgerEngine {
  /** The same as a database, for maintenance beside it. */
  readonly database: Database
  /** Prepares it for its first operation. The schema must be up to date. */
  open(): Promise<void>
  /** Carries out operations that arrived together, and commits them together. Never throws. */
  operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]>
  /** Runs batches, which see all operations that were answered. Never throws for what SQL did. */
  batches(batches: readonly (readonly Statement[])[]): Promise<readonly SqliteAnswer[]>
}

/** Makes the engine for a store. `later` runs work after a time in ms. */
export type OpenLedger = (
  store: SyncStore,
  deps: { readonly later: (ms: number, work: () => Promise<void>) => void },
) => LedgerEngine
