import type { SqlValue } from '../storage/database.ts'
import type { SyncStore } from '../storage/sync-store.ts'

/** A statement of a Durable Object has at most 100. */
const MAX_PARAMETERS = 100

/** The values of a row, in the order of the columns. */
export type InsertedRow = readonly SqlValue[]

/** Inserts rows. @throws what the store throws; the transaction must then be undone, since some of the rows may be there */
export type InsertRows = (store: Pick<SyncStore, 'run'>, rows: readonly InsertedRow[]) => void

/**
 * Makes the insertion of rows into a table, several in a statement. Each statement is a call of SQLite that opens the table and its
 * indexes. `OR FAIL`: to undo a statement of several rows by itself, SQLite would first copy every page that it changes.
 * @param columns separated by commas
 */
export function rowInsert(table: string, columns: string): InsertRows {
  const names = columns.split(',')
  const atOnce = Math.floor(MAX_PARAMETERS / names.length)
  const one = `(${names.map(() => '?').join(', ')})`
  const texts = Array.from({ length: atOnce + 1 }, (_, count) => {
    const values = Array.from({ length: count }, () => one).join(', ')
    return `INSERT OR FAIL INTO ${table} (${columns}) VALUES ${values}`
  })
  return (store, rows) => {
    for (let from = 0; from < rows.length; from += atOnce) {
      const some = rows.slice(from, from + atOnce)
      store.run(texts[some.length] ?? '', some.flat())
    }
  }
}
