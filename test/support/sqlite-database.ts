import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Database, Row, SqlValue, Storage } from '../../src/worker/storage/database.ts'
import { SQLITE_MIGRATIONS } from '../../src/worker/storage/migrations.ts'

/** A real SQLite behind the storage port, with the whole schema, in memory unless a path is given. */
export function openSqlite(path = ':memory:', { migrate = true } = {}): SqliteDatabase {
  const connection = new DatabaseSync(path)
  if (path !== ':memory:') connection.exec('PRAGMA journal_mode = WAL')
  const schema = SQLITE_MIGRATIONS.flatMap(({ statements }) => statements)
  for (const statement of migrate ? schema : []) connection.exec(statement)
  const prepared = new Map<string, StatementSync>()

  function prepare(sql: string): StatementSync {
    const statement = prepared.get(sql) ?? connection.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }

  return {
    connection,
    batch: async (statements) => {
      connection.exec('BEGIN IMMEDIATE')
      try {
        const rows = statements.map(({ sql, params }) => rowsOf(prepare(sql), params))
        connection.exec('COMMIT')
        return rows
      } catch (error) {
        connection.exec('ROLLBACK')
        throw error
      }
    },
  }
}

export interface SqliteDatabase extends Database {
  readonly connection: DatabaseSync
}

/** One database for all customers and the directory, as D1 and PostgreSQL have it. */
export function sharedStorage(db: Database): Storage {
  return { customer: () => db, directory: () => db }
}

function rowsOf(statement: StatementSync, params: readonly SqlValue[]): readonly Row[] {
  return statement.all(...params).map(plainRow)
}

/** A row as the storage interface has it; a BLOB or a BigInt in it would be a fault of the schema. */
export function plainRow(row: Readonly<Record<string, unknown>>): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      if (value === null || typeof value === 'string' || typeof value === 'number')
        return [column, value]
      throw new TypeError(`column ${column} is neither text nor a number`)
    }),
  )
}
