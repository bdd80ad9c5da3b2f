import type { Database, Row, Statement } from '../storage/database.ts'

/** What a query does with the ledger of a customer. */
export interface UsageLedger {
  /** Runs statements that read; all of them see the same state. */
  readonly read: (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>
  /** Keeps what was added up for later queries. Never rejects: without it they only take longer. */
  readonly keep: (statements: readonly Statement[]) => Promise<void>
}

/** @param pacedRead reads from the same ledger where reads are made to wait for others */
export function usageLedgerOf(
  db: Database,
  pacedRead: UsageLedger['read'] = (statements) => db.batch(statements),
): UsageLedger {
  let hasFailed = false
  return {
    read: pacedRead,
    keep: async (statements) => {
      // A full disk, or a locked row: the query must not wait for it again and again.
      if (hasFailed || statements.length === 0) return
      await db.batch(statements).catch(() => {
        hasFailed = true
      })
    },
  }
}
