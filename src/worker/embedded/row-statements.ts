import type { SqlValue } from '../storage/database.ts'
import type { SyncStore } from '../storage/sync-store.ts'

/** Maximum number of parameters of a statement in a Durable Object. */
const MAX_PARAMETERS = 100

/** The parameters of one row, in order. */
export type RowValues = readonly SqlValue[]

/**
 * Writes rows.
 * @throws what the store throws; the transaction must then be rolled back, because some rows may be written
 */
export type WriteRows = (store: Pick<SyncStore, 'run'>, rows: readonly RowValues[]) => void

/**
 * Makes a function that inserts rows into a table, several per statement, because SQLite opens the table and its indexes for
 * each statement. `OR FAIL` avoids a statement journal: to be able to undo a statement of several rows, SQLite would first
 * copy every page that it changes.
 * @param columns separated by commas
 */
export function rowInsert(table: string, columns: string): WriteRows {
  return severalAtOnce(
    namesOf(columns).length,
    (rows) => `INSERT OR FAIL INTO ${table} (${columns}) VALUES ${rows}`,
  )
}

/**
 * Makes a function that updates rows of a table, several per statement. The parameters of a row are its values, then its
 * key; no two rows may have the same key.
 * @param columns separated by commas
 * @param key the columns of the primary key
 */
export function rowUpdate(table: string, columns: string, key: string): WriteRows {
  const values = namesOf(columns)
  const names = [...values, ...namesOf(key)]
  const given = names.map((name, index) => `${name} = given.column${index + 1}`)
  const set = given.slice(0, values.length).join(', ')
  const where = given
    .slice(values.length)
    .map((term) => `${table}.${term}`)
    .join(' AND ')
  return severalAtOnce(
    names.length,
    (rows) => `UPDATE OR FAIL ${table} SET ${set} FROM (VALUES ${rows}) AS given WHERE ${where}`,
  )
}

/**
 * Makes a function that deletes rows of a table, several per statement.
 * @param key the column of the primary key
 */
export function rowDelete(table: string, key: string): WriteRows {
  return severalAtOnce(1, (rows) => `DELETE FROM ${table} WHERE ${key} IN (${rows})`)
}

function namesOf(columns: string): readonly string[] {
  return columns.split(',').map((name) => name.trim())
}

/** Maximum number of rows in a statement. Each number of rows is a statement of its own, which the engine keeps prepared. */
const MAX_ROWS = 20

function severalAtOnce(parameters: number, textOf: (rows: string) => string): WriteRows {
  const atOnce = Math.min(MAX_ROWS, Math.floor(MAX_PARAMETERS / parameters))
  const one = `(${Array.from({ length: parameters }, () => '?').join(', ')})`
  const texts = Array.from({ length: atOnce + 1 }, (_, count) =>
    textOf(Array.from({ length: count }, () => one).join(', ')),
  )
  return (store, rows) => {
    for (let from = 0; from < rows.length; from += atOnce) {
      const some = rows.slice(from, from + atOnce)
      store.run(texts[some.length] ?? '', some.flat())
    }
  }
}
