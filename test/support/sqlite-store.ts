import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { EmbeddedLedger } from '../../src/worker/embedded/embedded-ledger.ts'
import type { Database } from '../../src/worker/storage/database.ts'
import type { HeldReservation } from '../../src/worker/storage/ledger-engine.ts'
import { ledgerBehind } from '../../src/worker/storage/ledger-calls.ts'
import { migrate } from '../../src/worker/storage/migrate.ts'
import { SQLITE_MIGRATIONS } from '../../src/worker/storage/migrations.ts'
import { sqliteDatabase } from '../../src/worker/storage/sqlite-batches.ts'
import type { SyncStore } from '../../src/worker/storage/sync-store.ts'
import { plainRow } from './sqlite-database.ts'

/** SQLite in Node as the store of an embedded ledger. */
export function nodeStore(connection: DatabaseSync): SyncStore {
  const prepared = new Map<string, StatementSync>()
  const prepare = (sql: string) => {
    const statement = prepared.get(sql) ?? connection.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
  return {
    run: (sql, params) => {
      const statement = prepare(sql)
      if (statement.columns().length === 0) {
        return { rows: [], wrote: statement.run(...params).changes > 0 }
      }
      const rows = statement.all(...params).map(plainRow)
      return { rows, wrote: rows.length > 0 && !/^\s*SELECT\b/i.test(sql) }
    },
    snapshot: (work) => work(),
    transact: async (work) => {
      connection.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        connection.exec('COMMIT')
        return result
      } catch (error) {
        if (connection.isTransaction) connection.exec('ROLLBACK')
        throw asCoded(error)
      }
    },
  }
}

/** Node puts the result code beside the message, and other runtimes into it. */
function asCoded(error: unknown): unknown {
  const refused = error instanceof Error && /constraint|no such (table|column)/.test(error.message)
  return refused ? new Error(`${error.message}: SQLITE_CONSTRAINT`, { cause: error }) : error
}

export interface EmbeddedDatabase extends Database {
  readonly connection: DatabaseSync
  readonly ledgerEngine: EmbeddedLedger
  readonly store: SyncStore
  /** Has the folds run that are due within this time, ms; all unless given. */
  passTime(withinMs?: number): Promise<void>
}

/**
 * An embedded ledger over a SQLite file, in memory unless a path is given. Its folds run when `passTime` says so.
 * @param atOnce whether operations that memory alone decides are carried out so
 * @param held what a ledger held whose place it takes
 */
export async function openEmbedded(
  path = ':memory:',
  wrap: (store: SyncStore) => SyncStore = (store) => store,
  atOnce = false,
  held: readonly HeldReservation[] = [],
): Promise<EmbeddedDatabase> {
  const connection = new DatabaseSync(path)
  // A test ends its own process at most, and what that one wrote is kept by the system.
  if (path !== ':memory:') connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
  const store = wrap(nodeStore(connection))
  await migrate(sqliteDatabase(store), SQLITE_MIGRATIONS)
  const due: { readonly ms: number; readonly work: () => Promise<void> }[] = []
  const ledgerEngine = new EmbeddedLedger(store, {
    later: (ms, work) => void due.push({ ms, work }),
  })
  await ledgerEngine.open(held)
  return {
    connection,
    ledgerEngine,
    store,
    batch: (statements) => ledgerEngine.database.batch(statements),
    ledger: ledgerBehind(async (call) => {
      const known = atOnce ? ledgerEngine.atOnce(call) : undefined
      const [outcome] = known ? [known] : await ledgerEngine.operations([call])
      if (outcome === undefined) throw new Error('an operation was left unanswered')
      return outcome
    }),
    passTime: async (withinMs = Number.POSITIVE_INFINITY) => {
      const { now = [], later = [] } = Object.groupBy(due.splice(0), ({ ms }) =>
        ms <= withinMs ? 'now' : 'later',
      )
      due.push(...later)
      for (const { work } of now) await work()
    },
  }
}
