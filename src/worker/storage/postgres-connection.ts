import postgres from 'postgres'
import type { PooledConnection } from './connection-pool.ts'
import { connectProven, DatabaseNotProven, type DatabaseNetwork } from './database-socket.ts'
import type { SqlValue } from './database.ts'

/** One connection to PostgreSQL; it reconnects by itself after a loss. */
export interface PostgresConnection extends PooledConnection {
  readonly sql: postgres.Sql
}

const CONNECT_TIMEOUT_SECONDS = 5
const INT8 = 20
const NUMERIC = 1700
const BOOL = 16

/** The address of the database, and how it is reached. */
export interface PostgresAddress {
  /** `postgres://` */
  readonly databaseUrl: string
  /**
   * The network to a database that must prove its identity to the operator's authorities; overrides what the address says
   * about TLS.
   */
  readonly network?: DatabaseNetwork | undefined
}

/** Prepares a connection, which is established at the first query. */
export function openPostgresConnection({
  databaseUrl,
  network,
}: PostgresAddress): PostgresConnection {
  let discarded = false
  const sql = postgres(databaseUrl, {
    ...(network === undefined ? {} : provenTransport(network, () => discarded)),
    max: 1,
    // A refused connection fails only its own batch; the next batch connects again at once.
    backoff: () => 0,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    // The driver would renew an old connection in the middle of a batch. The pool does so between two uses.
    max_lifetime: null,
    // Fetching the server's own types would cost a query per connection; only the types below are needed.
    fetch_types: false,
    connection: { application_name: 'confidential-model-router' },
    types: {
      integer: { to: INT8, from: [INT8, NUMERIC], serialize: String, parse: integerFromText },
      flag: { to: BOOL, from: [BOOL], serialize: String, parse: flagFromText },
    },
    // Notices may quote values, and would be printed to the console.
    onnotice: () => {},
  })
  const discard = () => {
    discarded = true
    void sql.end({ timeout: 0 }).catch(() => {})
  }
  const isAlive = () =>
    sql.unsafe('SELECT 1').then(
      () => true,
      () => false,
    )
  return { sql, discard, isAlive }
}

/**
 * Options of the driver for a proven connection. Its types omit `socket`, which it calls for each connection; `socket` also
 * sets up TLS.
 */
function provenTransport(network: DatabaseNetwork, discarded: () => boolean) {
  const timeoutMs = CONNECT_TIMEOUT_SECONDS * 1_000
  return {
    ssl: false,
    async socket({ host, port }: { host: readonly string[]; port: readonly number[] }) {
      const [only = '', ...others] = host
      if (others.length > 0) throw new DatabaseNotProven('the address names several databases')
      const socket = await connectProven(network, { host: only, port: port[0] ?? 5432, timeoutMs })
      if (!discarded()) return socket
      socket.destroy()
      throw new Error('the connection was discarded while it was opened')
    },
  }
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
