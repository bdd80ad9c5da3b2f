import type { StorageEngineName } from '../../protocol/storage-engines.ts'
import { StorageUnavailable, type Database, type Row, type Statement } from './database.ts'
import { list, sql } from './sql.ts'

/** The tables that requests of customers read, in every engine. */
const TABLES = [
  'api_keys',
  'credits',
  'customers',
  'directory_customers',
  'evidence',
  'idempotent_requests',
  'journal',
  'receipt_heads',
  'receipts',
  'reservations',
  'rotated_keys',
  'schema_migrations',
  'secrets',
  'signing_keys',
  'usage',
  'usage_blocks',
]

interface Probe {
  readonly statement: Statement
  /** Whether its rows show that all tables can be read. */
  readonly isPassed: (rows: readonly Row[]) => boolean
}

/** The server looks for tables and rights before it finds that there is nothing to read. */
const BY_RIGHTS: Probe = {
  statement: {
    sql: TABLES.map((table) => `SELECT 1 AS one FROM ${table} WHERE 1 = 0`).join(' UNION ALL '),
    params: [],
  },
  isPassed: () => true,
}

/** Names the tables as values: where a statement reads them, what is in the memory of an embedded engine is written first. */
const BY_NAME: Probe = {
  statement: sql`SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ${list(TABLES)}`,
  isPassed: (rows) => rows.length === TABLES.length,
}

const PROBES: Readonly<Record<StorageEngineName, Probe>> = {
  'durable-object': BY_NAME,
  sqlite: BY_NAME,
  d1: BY_NAME,
  postgres: BY_RIGHTS,
}

/**
 * Asks the storage whether it has the router's tables and lets it read them. It writes nothing.
 * @throws StorageUnavailable where it does not answer, or a table is missing or must not be read
 */
export async function confirmReadable(
  directory: Database,
  engine: StorageEngineName,
): Promise<void> {
  const { statement, isPassed } = PROBES[engine]
  const [rows = []] = await directory.batch([statement])
  if (!isPassed(rows)) throw new StorageUnavailable('tables of the router are missing')
}
