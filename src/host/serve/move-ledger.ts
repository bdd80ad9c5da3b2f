import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EMBEDDED_LEDGERS, type EmbeddedEngine } from '../stack/ledger-dir.ts'
import { StartError } from '../stack/start-error.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** The result of a move. */
export interface MovedLedger {
  /** The file of the ledger from now on. */
  readonly file: string
  /** The former file, renamed. It still holds receipts, and must be deleted like a backup. */
  readonly former: string
  /** Rows of all tables. */
  readonly rows: number
}

/** Prefix of workerd's own tables, which hold no data of the ledger. */
const OF_WORKERD = '_cf_'

/**
 * Suffixes of the log files beside a database. SQLite reads them as part of the database, whichever database they were
 * written for.
 */
const LOGS = ['-wal', '-journal']

/**
 * Must be called before the state directory is opened: opening creates a missing directory and restricts its
 * permissions.
 * @throws StartError when there is no such directory, or no ledger in it to move
 */
export function requireLedger(stateDir: string, to: EmbeddedEngine): void {
  if (statSync(stateDir, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new StartError(
      `there is no state directory ${stateDir}: name that of the router (--state-dir)`,
    )
  }
  formerLedger(join(stateDir, 'storage'), to)
}

/**
 * Moves the ledger of a state directory to the other embedded engine: makes a checked copy, then renames the former
 * file. Whenever this is interrupted, there is one complete ledger, or there are two and neither engine starts.
 * @param state no router may be running on it
 * @throws StartError when there is no ledger to move, when a ledger or a part of one is already at the target, when the
 *   ledger is damaged, or when it cannot be copied
 */
export function moveLedger(state: Pick<StateDir, 'directory'>, to: EmbeddedEngine): MovedLedger {
  const directory = state.directory('storage')
  const source = formerLedger(directory, to)
  const file = join(directory, EMBEDDED_LEDGERS[to])
  if (existsSync(file)) {
    throw new StartError(
      `${file} is there already, beside ${source}: keep one of them and move the other one away`,
    )
  }
  refuseLogs(file)
  // SQLite takes it for a database without tables, and a router would begin anew in the copy.
  if (statSync(source).size === 0) {
    throw new StartError(`${source} is empty: restore it from a backup first`)
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const copy = `${file}.new`
  rmSync(copy, { force: true })
  const rows = copyOrNothing(source, copy)
  syncToDisk(copy)
  renameSync(copy, file)
  syncToDisk(dirname(file))
  const former = `${source}.moved`
  renameSync(source, former)
  // Logs remain where SQLite could not merge them into the file, as on a full disk.
  for (const log of LOGS) {
    if (existsSync(source + log)) renameSync(source + log, former + log)
  }
  // Reservations from when the ledger last served are obsolete.
  rmSync(`${source}.reservations`, { force: true })
  return { file, former, rows }
}

/**
 * The file to be moved.
 * @throws StartError when there is none
 */
function formerLedger(directory: string, to: EmbeddedEngine): string {
  const from = to === 'sqlite' ? 'durable-object' : 'sqlite'
  const source = join(directory, EMBEDDED_LEDGERS[from])
  if (existsSync(source)) return source
  throw new StartError(`there is no ledger of STORAGE=${from} to move: ${source} is missing`)
}

/** @throws StartError where a deleted database has left a log: SQLite would apply it to the copy */
function refuseLogs(file: string): void {
  const left = LOGS.map((log) => file + log).find((path) => existsSync(path))
  if (left === undefined) return
  throw new StartError(
    `${left} is left of another ledger, and would be taken for a part of this one: move it away`,
  )
}

/**
 * Copies the ledger, or removes what was copied: a partial copy would take the disk space that the router needs to
 * continue with the former file.
 */
function copyOrNothing(source: string, copy: string): number {
  try {
    return copyLedger(source, copy)
  } catch (error) {
    for (const path of [copy, ...LOGS.map((log) => copy + log)]) rmSync(path, { force: true })
    if (error instanceof StartError) throw error
    const reason = messageOfThrown(error)
    throw new StartError(`${source} cannot be copied to ${copy}: ${reason}`, { cause: error })
  }
}

/** @returns the number of rows in all tables, which is the same in both files */
function copyLedger(source: string, copy: string): number {
  const original = new DatabaseSync(source)
  try {
    if (!isIntact(original)) {
      throw new StartError(`${source} is damaged: restore it from a backup first`)
    }
    original.prepare('VACUUM INTO ?').run(copy)
    const rows = countRows(original)
    if (rowsWithoutForeignTables(copy) !== rows) {
      throw new StartError(`the copy of ${source} is not complete`)
    }
    return rows
  } finally {
    original.close()
  }
}

function isIntact(database: DatabaseSync): boolean {
  try {
    const [first] = database.prepare('PRAGMA integrity_check').all()
    return first?.['integrity_check'] === 'ok'
  } catch {
    return false
  }
}

function rowsWithoutForeignTables(copy: string): number {
  const database = new DatabaseSync(copy)
  try {
    for (const name of tablesOf(database)) {
      if (name.startsWith(OF_WORKERD)) database.exec(`DROP TABLE "${name}"`)
    }
    return countRows(database)
  } finally {
    database.close()
  }
}

function countRows(database: DatabaseSync): number {
  const own = tablesOf(database).filter((name) => !name.startsWith(OF_WORKERD))
  return own.reduce((sum, name) => {
    const row = database.prepare(`SELECT COUNT(*) AS n FROM "${name}"`).get()
    return sum + Number(row?.['n'])
  }, 0)
}

function tablesOf(database: DatabaseSync): string[] {
  const query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
  return database
    .prepare(query)
    .all()
    .map((row) => String(row['name']))
}

function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
