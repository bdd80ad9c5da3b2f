import type { LedgerOperations } from './ledger-operations.ts'

/** The storage interface (docs/storage.md), with the same guarantees on every engine. */

/**
 * Integers beyond 2^53 are passed as decimal text: bound as text under CAST(? AS BIGINT), read as CAST(x AS TEXT).
 */
export type SqlValue = string | number | null

/** One SQL statement in the dialect SQLite and PostgreSQL share, with `?` placeholders. */
export interface Statement {
  readonly sql: string
  readonly params: readonly SqlValue[]
  /** The customer of a write through `Storage.customer`; absent: the statement may change rows of any customer. */
  readonly customerId?: string
}

export type Row = Readonly<Record<string, SqlValue>>

export interface Database {
  /**
   * Runs all statements in order in one transaction, all or nothing, and returns the rows of each.
   * @throws StorageUnavailable when the engine cannot be reached or is out of space or locked
   */
  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
  /** The engine's own ledger operations; absent: they run as batches of SQL (`settle/sql-ledger.ts`). */
  readonly ledger?: LedgerOperations | undefined
}

/** Performs a wait, of perhaps seconds, for a row that another transaction has locked. */
export type YieldDuring = <Result>(wait: () => Promise<Result>) => Promise<Result>

export interface Storage {
  /**
   * The rows of one customer. Writes through it must not change any other customer's account: an engine may lock, or read
   * again, only this one. The id must have passed its MAC check.
   * @param yieldDuring performs waits for locked rows, for example so that other requests need not wait, too; by default they are
   *   simply awaited
   */
  customer(id: string, yieldDuring?: YieldDuring): Database
  /** Data of no single customer (the directory secret, customer ids, signing keys), in the same database. */
  directory(): Database
}

/**
 * Runs one bounded round of a database's maintenance, and returns when the next one is due (ms since the epoch; undefined:
 * none is scheduled). The engines only call it.
 */
export type Sweep = (db: Database, now: number) => Promise<{ readonly next: number | undefined }>

/** The latest time after a write at which the next round runs, ms. */
export const SWEEP_AFTER_WRITE_MS = 60_000

/** The shortest pause between two rounds, ms, so that a backlog does not starve requests. */
export const SWEEP_PAUSE_MS = 250

/** The engine does not answer: nothing may be served or billed. */
export class StorageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StorageUnavailable'
  }
}
