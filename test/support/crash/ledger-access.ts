import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import postgres from 'postgres'
import type { Database, Row, Statement } from '../../../src/worker/storage/database.ts'
import { numberPlaceholders } from '../../../src/worker/storage/postgres-batch.ts'
import { openEmbedded } from '../sqlite-store.ts'

/** SQLite files below a directory, wherever an engine puts them. */
export function sqliteFiles(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => join(directory, name))
}

/** The SQLite file below a directory that holds a customer. No other process may have it open. */
export function ledgerFileOf(directory: string, customerId: string): string {
  const file = sqliteFiles(directory).find((path) => holdsCustomer(path, customerId))
  if (file === undefined) throw new Error('no file has this customer')
  return file
}

function holdsCustomer(path: string, customerId: string): boolean {
  const db = new DatabaseSync(path)
  try {
    const table = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'customers'").get()
    const find = 'SELECT 1 FROM customers WHERE customer_id = ?'
    return table !== undefined && db.prepare(find).get(customerId) !== undefined
  } finally {
    db.close()
  }
}

/** Works on the SQLite file below a directory that holds a customer, and on what is still in its journal. */
export async function inLedgerFile<Result>(
  directory: string,
  customerId: string,
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  const db = await openEmbedded(ledgerFileOf(directory, customerId))
  try {
    return await work(db)
  } finally {
    db.connection.close()
  }
}

/** Works on a PostgreSQL database over a connection of its own. */
export async function inPostgres<Result>(
  databaseUrl: string,
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  const connection = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const run = ({ sql, params }: Statement) =>
    connection.unsafe<Row[]>(numberPlaceholders(sql), [...params])
  try {
    return await work({ batch: (statements) => Promise.all(statements.map(run)) })
  } finally {
    await connection.end()
  }
}
