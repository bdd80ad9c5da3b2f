import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Row, SqlValue } from '../worker/storage/database.ts'
import { isRead } from '../worker/storage/sql.ts'
import type { SyncStore } from '../worker/storage/sync-store.ts'
import { FileLost, watchFile } from './same-file.ts'

/** A SQLite file of this process. */
export interface SqliteFile extends SyncStore {
  /**
   * Writes everything in the write-ahead log to the database and truncates the log, which otherwise keeps old versions of
   * pages until later writes reuse their space. It does not wait for readers.
   * @returns false where a reader still needs the log
   */
  emptyLog(): boolean
  close(): void
}

/**
 * Prepared statements kept at most. The program has fewer SQL texts, but each length of a list of values makes another one.
 */
const MAX_PREPARED = 1_000

/** How long an operation waits for the lock of another process, such as a backup, ms. */
const BUSY_TIMEOUT_MS = 5_000

/**
 * Pages of the write-ahead log (16 MiB) after which a commit writes them to the database. Folds change the same index pages
 * again and again: with SQLite's default of 1,000, each of these pages would be written to the database several times a
 * second.
 */
const CHECKPOINT_PAGES = 4_000

/**
 * Page cache of the writer, KiB. It must hold all pages that a fold changes: with SQLite's default of two MiB, pages would
 * be written to the log before the transaction ends, read again, changed again and written again.
 */
const CACHE_KIB = 16_384

/** sqlite.org/pragma.html#pragma_wal_checkpoint */
const EMPTY_LOG = 'PRAGMA wal_checkpoint(TRUNCATE)'

/**
 * Opens the database for writing, creating it if necessary. A commit is in the write-ahead log on the disk before it
 * returns (WAL with synchronous=FULL, sqlite.org/pragma.html).
 * @throws Error with SQLite's code in its message
 */
export function openForWriting(path: string): SqliteFile {
  const connection = translated(() => {
    const opened = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
    opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    // Zeroes the old bytes of changed and deleted rows, also in freed pages: with FAST, freed pages keep copies of rows that
    // moved.
    opened.exec('PRAGMA secure_delete = ON')
    opened.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    opened.exec(`PRAGMA cache_size = -${CACHE_KIB}`)
    return opened
  })
  return fileOf(connection, path)
}

/**
 * Opens the database for reading, beside the writer: a read sees what was committed when it began.
 * @throws Error with SQLite's code in its message
 */
export function openForReading(path: string): SqliteFile {
  const connection = translated(
    () => new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true }),
  )
  return fileOf(connection, path)
}

function fileOf(connection: DatabaseSync, path: string): SqliteFile {
  const confirmSameFile = watchFile(path, () => sizeOf(connection))
  const prepare = preparing(connection)
  const confirm = () => {
    try {
      confirmSameFile()
    } catch (error) {
      // This process still has the removed log open, but the next process to open the database will not find it: save its
      // content now.
      if (error instanceof FileLost && error.loss === 'logGone') connection.exec(EMPTY_LOG)
      throw error
    }
  }
  const within = <Result>(begin: string, work: () => Result): Result =>
    translated(() => {
      confirm()
      connection.exec(begin)
      try {
        const result = work()
        connection.exec('COMMIT')
        return result
      } catch (error) {
        // SQLite has rolled back by itself when, for example, the disk is full.
        if (connection.isTransaction) connection.exec('ROLLBACK')
        throw error
      }
    })
  return {
    run: (sql, params) => answerOf(prepare(sql), params),
    snapshot: (work) => within('BEGIN', work),
    transact: async (work) => within('BEGIN IMMEDIATE', work),
    emptyLog: () =>
      translated(() => {
        confirm()
        connection.exec('PRAGMA busy_timeout = 0')
        try {
          return connection.prepare(EMPTY_LOG).get()?.['busy'] === 0
        } finally {
          connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
        }
      }),
    close: () => connection.close(),
  }
}

/** The size of the database in bytes as SQLite counts it: its file together with its write-ahead log. */
function sizeOf(connection: DatabaseSync): bigint {
  const size = 'SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size'
  return BigInt(String(connection.prepare(size).get()?.['size']))
}

interface Prepared {
  readonly statement: StatementSync
  readonly reads: boolean
  /** Whether it returns rows. */
  readonly answers: boolean
}

/** Caches prepared statements, and drops the least recently used one when the cache is full. */
function preparing(connection: DatabaseSync): (sql: string) => Prepared {
  const prepared = new Map<string, Prepared>()
  return (sql) => {
    const known = prepared.get(sql)
    if (known !== undefined && prepared.size < MAX_PREPARED) return known
    const made = known ?? preparedOf(connection, sql)
    prepared.delete(sql)
    prepared.set(sql, made)
    const [oldest] = prepared.keys()
    if (prepared.size > MAX_PREPARED && oldest !== undefined) prepared.delete(oldest)
    return made
  }
}

function preparedOf(connection: DatabaseSync, sql: string): Prepared {
  const statement = connection.prepare(sql)
  const answers = statement.columns().length > 0
  return { statement, reads: isRead({ sql, params: [] }), answers }
}

function answerOf({ statement, reads, answers }: Prepared, params: readonly SqlValue[]) {
  if (!answers) return { rows: [], wrote: statement.run(...params).changes > 0 }
  // The schema has no BLOB, and integers beyond 2^53 are read as text.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const rows = statement.all(...params) as unknown as readonly Row[]
  return { rows, wrote: !reads && rows.length > 0 }
}

/** SQLite's result codes (sqlite.org/rescode.html), by number. */
const CODES: ReadonlyMap<number, string> = new Map([
  [1, 'SQLITE_ERROR'],
  [3, 'SQLITE_PERM'],
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [7, 'SQLITE_NOMEM'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [17, 'SQLITE_SCHEMA'],
  [18, 'SQLITE_TOOBIG'],
  [19, 'SQLITE_CONSTRAINT'],
  [20, 'SQLITE_MISMATCH'],
  [21, 'SQLITE_MISUSE'],
  [23, 'SQLITE_AUTH'],
  [25, 'SQLITE_RANGE'],
  [26, 'SQLITE_NOTADB'],
])

/** Runs work; adds the name of SQLite's result code to its errors, as a Durable Object does. */
function translated<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined || !(error instanceof Error)) throw error
    throw new Error(`${error.message}: ${code}`, { cause: error })
  }
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  // The integer does not fit a double; the statement should have read it as text.
  if (error.code === 'ERR_OUT_OF_RANGE') return 'SQLITE_MISMATCH'
  const number = 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : 0
  return CODES.get(number & 0xff)
}
