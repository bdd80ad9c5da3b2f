import postgres from 'postgres'
import type { PooledConnection } from './connection-pool.ts'
import { connectProven, DatabaseNotProven, type DatabaseNetwork } from './database-socket.ts'
import type { SqlValue } from './database.ts'

/** One connection to PostgreSQL; it reconnects by itself after it was lost. */
export interface PostgresConnection extends PooledConnection {
  readonly sql: postgres.Sql
}

const CONNECT_TIMEOUT_SECONDS = 5
const INT8 = 20
const NUMERIC = 1700
const BOOL = 16

/** Where the database is, and how it is reached. */
export interface PostgresAddress {
  /** `postgres://` */
  readonly databaseUrl: string
  /** The way to a database that must prove itself to the operator's authorities; whatever the address says of TLS. */
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
    // A refused connection fails its own batch only; the next one connects again at once.
    backoff: () => 0,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    // By itself it would renew an old one in the middle of a batch. The pool does so between two.
    max_lifetime: null,
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

/** Options of the driver, whose types leave `socket` out: it is called for each connection, and TLS is its matter. */
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
      throw new Error('the connection was given up meanwhile')
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
