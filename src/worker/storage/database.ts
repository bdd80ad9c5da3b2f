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
  /** Of a write by the storage of one customer (`Storage.customer`): whose. Absent: it may change the rows of any. */
  readonly customerId?: string
}

export type Row = Readonly<Record<string, SqlValue>>

export interface Database {
  /**
   * Runs all statements in order in one transaction, all or nothing, and returns the rows of each.
   * @throws StorageUnavailable when the engine cannot be reached or is out of space or locked
   */
  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
  /** The engine's own operations on the ledger; absent: they are batches (`settle/sql-ledger.ts`). */
  readonly ledger?: LedgerOperations | undefined
}

/** Makes a wait of maybe seconds for what another transaction has locked. */
export type Aside = <Result>(wait: () => Promise<Result>) => Promise<Result>

export interface Storage {
  /**
   * The rows of one customer. What is written through it must change the account of no other: an engine may lock, or read
   * again, that one alone. The id must have passed its MAC check before.
   * @param aside makes waits in which others need not wait, too; by default nothing is done about them
   */
  customer(id: string, aside?: Aside): Database
  /** Data of no single customer (the directory secret, customer ids, signing keys), in the same database. */
  directory(): Database
}

/**
 * One bounded round of a database's maintenance, and when the next one is due (ms since the epoch; undefined: none is
 * scheduled). The engines only run it.
 */
export type Sweep = (db: Database, now: number) => Promise<{ readonly next: number | undefined }>

/** How long after a write the next round runs at the latest. */
export const SWEEP_AFTER_WRITE_MS = 60_000

/** The shortest pause between two rounds, so that a backlog is worked off without starving requests. */
export const SWEEP_PAUSE_MS = 250

/** The engine does not answer: nothing may be served or billed. */
export class StorageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StorageUnavailable'
  }
}
