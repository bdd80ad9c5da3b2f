import type { Row, SqlValue } from './database.ts'

/** A SQLite database that answers at once: the storage of a Durable Object, or a connection of `node:sqlite`. */
export interface SyncStore {
  /** Runs one statement. @throws with SQLite's own result code in the message, such as `SQLITE_CONSTRAINT` */
  run(sql: string, params: readonly SqlValue[]): SyncAnswer
  /** Runs work that reads only; all of it sees the same state. */
  snapshot<Result>(work: () => Result): Result
  /**
   * Runs the work in a transaction and commits it, or undoes it when the work or the commit fails. Once it resolves, and
   * where the caller's answer waits for the disk by itself (the output gate of a Durable Object) before that answer is sent,
   * it is durable. The caller sees to it that nothing else uses the store meanwhile.
   */
  transact<Result>(work: () => Result): Promise<Result>
  /**
   * The same, but undone only when the work fails: the commit follows before anything of the caller's answer is sent. If that
   * fails, the caller's call fails in place of its answer, and the owner of the store ends with all that it has in memory; another
   * one finds in the store what was committed. Absent where `transact` takes no longer.
   */
  readonly transactWithAnswer?: (<Result>(work: () => Result) => Result) | undefined
}

export interface SyncAnswer {
  readonly rows: readonly Row[]
  /** Whether rows may have changed. */
  readonly wrote: boolean
}
