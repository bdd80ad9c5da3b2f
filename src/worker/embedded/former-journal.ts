import { textOf } from '../storage/row.ts'
import type { SyncStore } from '../storage/sync-store.ts'

/** Characters of a slot of the former journal; its rows are recognised by this length. */
export const FORMER_SLOT_CHARACTERS = 32_768

const SLOTS = 128

/** SQL condition for the rows of the former journal; the parameter is their length. */
const ITS_ROWS = `slot BETWEEN 0 AND ${SLOTS - 1} AND LENGTH(entries) = ?`

/** Separates the number of a slot from its entries, and the entries from each other. */
const END = '\n'

/**
 * The journal of earlier releases: rows of 32,768 characters, each with whole entries. Its entries are folded at the first
 * start of this release, and its rows are replaced by those of the current journal.
 */
export class FormerJournal {
  readonly #store: Pick<SyncStore, 'run'>

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  /** The entries that were not folded yet, oldest first. */
  read(): readonly string[] {
    const find = `SELECT entries FROM journal WHERE ${ITS_ROWS} AND entries >= '1'`
    return this.#store
      .run(find, [FORMER_SLOT_CHARACTERS])
      .rows.map((row) => {
        const [number, ...rest] = textOf(row, 'entries').split(END)
        return { number: Number(number), entries: rest.slice(0, -1) }
      })
      .toSorted((one, other) => one.number - other.number)
      .flatMap(({ entries }) => entries)
  }

  /** Removes the rows. They are overwritten first, so that no part of a receipt stays in the file. Runs in a transaction. */
  remove(): void {
    const empty = '0'.repeat(FORMER_SLOT_CHARACTERS)
    const overwrite = `UPDATE journal SET entries = ? WHERE ${ITS_ROWS} AND entries >= '1'`
    this.#store.run(overwrite, [empty, FORMER_SLOT_CHARACTERS])
    this.#store.run(`DELETE FROM journal WHERE ${ITS_ROWS}`, [FORMER_SLOT_CHARACTERS])
  }
}
