import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Row, SqlValue } from '../worker/storage/database.ts'
import { isRead } from '../worker/storage/sql.ts'
import type { SyncStore } from '../worker/storage/sync-store.ts'
import { FileLost, watchFile } from './same-file.ts'

/** A SQLite file of this process. */
export interface SqliteFile extends SyncStore {
  /**
   * Writes everything in the write-ahead log to the database and empties the log, which otherwise keeps older versions of
   * pages until later writes need their space. It does not wait for readers.
   * @returns false where a reader still needs the log
   */
  emptyLog(): boolean
  close(): void
}

/** More than the program has texts of one form; lists of values make further ones. */
const MAX_PREPARED = 1_000

/** How long an operation waits for another process, such as a backup, to let go of the file, ms. */
const BUSY_TIMEOUT_MS = 5_000

/**
 * Pages of the write-ahead log (16 MiB) after which it is written to the database, in a commit. Folds change the same pages of
 * the indexes again and again: with SQLite's own 1,000 each of them is written to the database several times a second.
 */
const CHECKPOINT_PAGES = 4_000

/**
 * Memory for pages of the writer, KiB. What a fold changes must have room: with SQLite's own two MiB, pages are written to the log
 * before the transaction ends, read again, changed again and written again.
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
    // Former bytes of rows are zeroed, also in pages that are freed: with FAST these keep copies of rows that moved to other pages.
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
      // The log is still open, and whoever opens the database next does not have it.
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
        // SQLite has itself rolled back what failed for want of space.
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

/** The size of a database by its own account, in its file and its write-ahead log. */
function sizeOf(connection: DatabaseSync): bigint {
  const size = 'SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size'
  return BigInt(String(connection.prepare(size).get()?.['size']))
}

interface Prepared {
  readonly statement: StatementSync
  readonly reads: boolean
  /** Whether it answers rows. */
  readonly answers: boolean
}

/** Keeps prepared statements; the one that was not used for longest makes room. */
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

/** Runs work; its errors name SQLite's code as those of a Durable Object do. */
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
  // An integer that a double cannot hold, which the statement should have read as text.
  if (error.code === 'ERR_OUT_OF_RANGE') return 'SQLITE_MISMATCH'
  const number = 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : 0
  return CODES.get(number & 0xff)
}
