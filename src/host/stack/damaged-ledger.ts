import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StartError } from './start-error.ts'

/** SQLITE_CORRUPT and SQLITE_NOTADB (sqlite.org/rescode.html). */
const DAMAGED = [11, 26]

/**
 * Checks the ledger of an embedded engine before the engine opens it.
 * @throws StartError when the file is damaged; the message names it
 */
export function refuseDamagedLedger(file: string): void {
  refuseDamaged(
    file,
    'the ledger',
    'restore it from a backup (docs/operations.md, "Backup and restore")',
  )
}

/**
 * Checks a file in which workerd has the alarms of its Durable Objects. An object sets its alarm anew where the file is
 * missing.
 * @throws StartError when the file is damaged; the message names it
 */
export function refuseDamagedAlarms(file: string): void {
  refuseDamaged(file, 'which has the times of maintenance', 'remove it, and a new one is made')
}

/**
 * Checks header, size, schema and the first page of each table. Damage elsewhere is found only when it is read. A file that
 * does not exist, or that this process may not read, is left to the engine.
 */
function refuseDamaged(file: string, what: string, advice: string): void {
  if (!existsSync(file)) return
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(addressOf(file), { readOnly: true })
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    for (const { name } of tables) database.prepare(`SELECT 1 FROM "${String(name)}" LIMIT 1`).get()
  } catch (error) {
    if (!isDamage(error)) return
    throw new StartError(`${file}, ${what}, is damaged (${error.message}): ${advice}`, {
      cause: error,
    })
  } finally {
    database?.close()
  }
}

/**
 * Opens a database without a write-ahead log as immutable, so that SQLite writes nothing beside the file, not even for
 * a moment.
 */
function addressOf(file: string): URL {
  const address = pathToFileURL(file)
  if (!existsSync(`${file}-wal`)) address.searchParams.set('immutable', '1')
  return address
}

function isDamage(error: unknown): error is Error {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
  return DAMAGED.includes(code & 0xff)
}
