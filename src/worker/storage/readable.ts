import type { StorageEngineName } from '../../protocol/storage-engines.ts'
import { StorageUnavailable, type Database, type Row, type Statement } from './database.ts'
import { list, sql } from './sql.ts'

/** The tables that customers' requests read, on every engine. */
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
  /** Whether the rows prove that all tables can be read. */
  readonly isPassed: (rows: readonly Row[]) => boolean
}

/** PostgreSQL checks tables and permissions even though the query reads no row. */
const BY_RIGHTS: Probe = {
  statement: {
    sql: TABLES.map((table) => `SELECT 1 AS one FROM ${table} WHERE 1 = 0`).join(' UNION ALL '),
    params: [],
  },
  isPassed: () => true,
}

/** Names the tables as values: if the statement read them, an embedded engine would first fold its memory into them. */
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
 * Checks that the storage has the router's tables and lets it read them. Writes nothing.
 * @throws StorageUnavailable where the storage does not answer, a table is missing or reading it is not permitted
 */
export async function confirmReadable(
  directory: Database,
  engine: StorageEngineName,
): Promise<void> {
  const { statement, isPassed } = PROBES[engine]
  const [rows = []] = await directory.batch([statement])
  if (!isPassed(rows)) throw new StorageUnavailable('tables of the router are missing')
}
