import type { BatchRows } from './batch-outcome.ts'
import { StorageUnavailable, type Database, type Statement, type Storage } from './database.ts'
import type { LedgerOperations } from './ledger-operations.ts'

/**
 * Wraps a storage, and reports each time the engine does not answer, with the engine's own code, such as `SQLITE_FULL` or
 * `SQLSTATE 42501`, or `unreachable` where there is none.
 */
export function monitoredStorage(
  storage: Storage,
  onUnavailable: (failure: string) => void,
): Storage {
  const report = (error: unknown) => {
    if (error instanceof StorageUnavailable) onUnavailable(failureOf(error))
    throw error
  }
  const watch: Watch = (operation) => operation.catch(report)
  // Cached, because most engines have one ledger for all customers.
  const ledgers = new WeakMap<LedgerOperations, LedgerOperations>()
  const ledgerOf = ({ ledger }: Database) => {
    if (ledger === undefined) return undefined
    const monitored = ledgers.get(ledger) ?? monitoredLedger(ledger, watch)
    ledgers.set(ledger, monitored)
    return monitored
  }
  const monitoredDatabase = (database: Database) =>
    new MonitoredDatabase(database, watch, ledgerOf(database))
  const directory = monitoredDatabase(storage.directory())
  return {
    customer: (id, yieldDuring) => monitoredDatabase(storage.customer(id, yieldDuring)),
    directory: () => directory,
  }
}

/** Awaits an operation, and reports its failure. */
type Watch = <Result>(operation: Promise<Result>) => Promise<Result>

class MonitoredDatabase implements Database {
  readonly #database: Database
  readonly #watch: Watch
  readonly ledger: LedgerOperations | undefined

  constructor(database: Database, watch: Watch, ledger: LedgerOperations | undefined) {
    this.#database = database
    this.#watch = watch
    this.ledger = ledger
  }

  batch(statements: readonly Statement[]): Promise<BatchRows> {
    return this.#watch(this.#database.batch(statements))
  }
}

function monitoredLedger(ledger: LedgerOperations, watch: Watch): LedgerOperations {
  const { findKey, storeEvidence } = ledger
  return {
    admit: (entry) => watch(ledger.admit(entry)),
    settle: (entry) => watch(ledger.settle(entry)),
    release: (requestId) => watch(ledger.release(requestId)),
    findKey: findKey && ((key) => watch(findKey(key))),
    storeEvidence: storeEvidence && ((evidence) => watch(storeEvidence(evidence))),
  }
}

function failureOf({ message }: StorageUnavailable): string {
  return /\bSQLITE_[A-Z]+\b|\bSQLSTATE [0-9A-Z]{5}\b/.exec(message)?.[0] ?? 'unreachable'
}
