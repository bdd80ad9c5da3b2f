import type { Database, Row, Statement } from '../storage/database.ts'

/** A customer's ledger, as far as queries use it. */
export interface UsageLedger {
  /** Runs statements that read, all on the same snapshot. */
  readonly read: (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>
  /** Stores computed totals for later queries. Never rejects: without them these only take longer. */
  readonly keep: (statements: readonly Statement[]) => Promise<void>
}

/** @param pacedRead reads from the same ledger, but waits for its turn */
export function usageLedgerOf(
  db: Database,
  pacedRead: UsageLedger['read'] = (statements) => db.batch(statements),
): UsageLedger {
  let hasFailed = false
  return {
    read: pacedRead,
    keep: async (statements) => {
      // After a failure (a full disk, a locked row), the query does not try again, because each try could make it wait.
      if (hasFailed || statements.length === 0) return
      await db.batch(statements).catch(() => {
        hasFailed = true
      })
    },
  }
}
