import type { Row, SqlValue } from './database.ts'

/** A SQLite database with a synchronous interface: the storage of a Durable Object, or a connection of `node:sqlite`. */
export interface SyncStore {
  /**
   * Runs one statement.
   * @throws Error with SQLite's result code in the message, such as `SQLITE_CONSTRAINT`
   */
  run(sql: string, params: readonly SqlValue[]): SyncAnswer
  /** Runs work that only reads, on one snapshot. */
  snapshot<Result>(work: () => Result): Result
  /**
   * Runs the work in a transaction and commits it; rolls back when the work or the commit fails. Once the promise resolves,
   * the transaction is durable; in a Durable Object, it is so before the caller's answer is sent (the output gate). The
   * caller makes sure that nothing else uses the store meanwhile.
   */
  transact<Result>(work: () => Result): Promise<Result>
  /**
   * Like `transact`, but synchronous and rolled back only when the work fails: the commit follows before the caller's answer
   * is sent. If that commit fails, the caller's call fails instead of being answered, the runtime discards the store's owner
   * with its memory, and a new owner finds in the store only what was committed. Absent where `transact` is as fast.
   */
  readonly transactWithAnswer?: (<Result>(work: () => Result) => Result) | undefined
}

export interface SyncAnswer {
  readonly rows: readonly Row[]
  /** Whether rows may have changed. */
  readonly wrote: boolean
}
