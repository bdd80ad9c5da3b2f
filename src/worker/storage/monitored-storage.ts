import { StorageUnavailable, type Database, type Storage } from './database.ts'
import type { LedgerOperations } from './ledger-operations.ts'

/**
 * A storage that reports every failure of its engine to answer, with SQLite's own code, such as `SQLITE_FULL`, where
 * there is one.
 */
export function monitoredStorage(
  storage: Storage,
  onUnavailable: (failure: string) => void,
): Storage {
  const watch = async <Result>(operation: Promise<Result>): Promise<Result> => {
    try {
      return await operation
    } catch (error) {
      if (error instanceof StorageUnavailable) onUnavailable(failureOf(error))
      throw error
    }
  }
  const watchedLedger = (ledger: LedgerOperations): LedgerOperations => {
    const { findKey, storeEvidence } = ledger
    return {
      admit: (entry) => watch(ledger.admit(entry)),
      settle: (entry) => watch(ledger.settle(entry)),
      release: (requestId) => watch(ledger.release(requestId)),
      findKey: findKey && ((key) => watch(findKey(key))),
      storeEvidence: storeEvidence && ((evidence) => watch(storeEvidence(evidence))),
    }
  }
  const watched = (database: Database): Database => ({
    batch: (statements) => watch(database.batch(statements)),
    ...(database.ledger !== undefined && { ledger: watchedLedger(database.ledger) }),
  })
  const directory = watched(storage.directory())
  return {
    ...storage,
    customer: (id, aside) => watched(storage.customer(id, aside)),
    directory: () => directory,
  }
}

function failureOf({ message }: StorageUnavailable): string {
  return /\bSQLITE_[A-Z]+\b/.exec(message)?.[0] ?? 'unreachable'
}
