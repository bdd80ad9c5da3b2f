import postgres from 'postgres'
import type { PooledConnection } from './connection-pool.ts'
import type { SqlValue } from './database.ts'

/** One connection to PostgreSQL; it reconnects by itself after it was lost. */
export interface PostgresConnection extends PooledConnection {
  readonly sql: postgres.Sql
}

const CONNECT_TIMEOUT_SECONDS = 5
const INT8 = 20
const NUMERIC = 1700
const BOOL = 16

/** Prepares a connection, which is established at the first query. */
export function openPostgresConnection(databaseUrl: string): PostgresConnection {
  const sql = postgres(databaseUrl, {
    max: 1,
    // A refused connection fails its own batch only; the next one connects again at once.
    backoff: () => 0,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    // Only the types below are needed; fetching the server's own costs a query per connection.
    fetch_types: false,
    connection: { application_name: 'confidential-model-router' },
    types: {
      integer: { to: INT8, from: [INT8, NUMERIC], serialize: String, parse: integerFromText },
      flag: { to: BOOL, from: [BOOL], serialize: String, parse: flagFromText },
    },
    // Notices may quote values, and would be printed to the console.
    onnotice: () => {},
  })
  return { sql, discard: () => void sql.end({ timeout: 0 }).catch(() => {}) }
}

/**
 * PostgreSQL sends int8 and numeric as text. Within 2^53 they become numbers, as SQLite returns them; beyond it they
 * stay text, because a number would lose digits.
 */
function integerFromText(text: string): SqlValue {
  const value = Number(text)
  return Number.isSafeInteger(value) || text.includes('.') ? value : text
}

/** SQLite has no booleans: its comparisons return 1 and 0. */
function flagFromText(text: string): SqlValue {
  return text === 't' ? 1 : 0
}
