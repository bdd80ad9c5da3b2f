import { numberOf, textOf } from '../storage/row.ts'
import type { SyncStore } from '../storage/sync-store.ts'

/** Characters of a slot. Longer entries do not go through the journal. */
const SLOT_CHARACTERS = 32_768

/** What is not folded yet is at most four megabytes. */
const SLOTS = 128

/** An empty slot; a used one begins with another digit. */
const EMPTY = '0'.repeat(SLOT_CHARACTERS)

/** An empty slot that differs in every page. */
const UNLIKE_EMPTY = '0'.padEnd(SLOT_CHARACTERS, '1')

/** Separates the entries of a slot; JSON text contains none. */
const END = '\n'

/** Room for the number of a slot. */
const HEAD_CHARACTERS = 24

/**
 * The settlements that are not in the tables yet, on disk. It has a fixed number of rows of a fixed length, which are
 * rewritten in place: a receipt that was in it leaves no bytes behind in the file (docs/storage.md, "Erasure"), and a
 * commit appends nothing.
 */
export class Journal {
  readonly #store: Pick<SyncStore, 'run'>
  /** Entries that an empty journal has room for, however long they are. */
  readonly maxEntries = SLOTS
  #used = 0
  #next = 1

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  /** Makes the slots at the first start. Runs in a transaction. */
  create(): void {
    const [row] = this.#store.run('SELECT COUNT(*) AS slots FROM journal', []).rows
    const slots = row === undefined ? 0 : numberOf(row, 'slots')
    for (let slot = slots; slot < SLOTS; slot++) {
      this.#store.run('INSERT INTO journal (slot, entries) VALUES (?, ?)', [slot, EMPTY])
    }
  }

  /**
   * Writes as much as a settlement needs, and leaves everything as it was: an engine whose disk has no room for that must
   * not admit anything. Runs in a transaction.
   */
  tryWrite(): void {
    const write = `UPDATE journal SET entries = ? WHERE slot = ? AND entries < '1'`
    // SQLite writes only pages that were changed, if only for a moment.
    for (const text of [UNLIKE_EMPTY, EMPTY]) this.#store.run(write, [text, SLOTS - 1])
  }

  /** The entries that were not folded when the process ended, oldest first. */
  read(): readonly string[] {
    const find = `SELECT entries FROM journal WHERE entries >= '1'`
    const slots = this.#store.run(find, []).rows.map((row) => readSlot(textOf(row, 'entries')))
    slots.sort((one, other) => one.number - other.number)
    this.#used = slots.length
    this.#next = (slots.at(-1)?.number ?? 0) + 1
    return slots.flatMap(({ entries }) => entries)
  }

  /** Whether an entry can be in the journal at all. */
  takes(entry: string): boolean {
    return entry.length + HEAD_CHARACTERS <= SLOT_CHARACTERS && !/[^ -~]/.test(entry)
  }

  /** Divides entries into slots. */
  pack(entries: readonly string[]): readonly (readonly string[])[] {
    const slots: string[][] = []
    let room = 0
    for (const entry of entries) {
      const needs = entry.length + END.length
      if (needs > room) {
        slots.push([])
        room = SLOT_CHARACTERS - HEAD_CHARACTERS
      }
      slots.at(-1)?.push(entry)
      room -= needs
    }
    return slots
  }

  /** Whether so many entries find room, however long they are. */
  hasRoom(entries: number): boolean {
    return this.#used + entries <= SLOTS
  }

  /** Writes slots. Runs in a transaction; `wrote` is called once that is committed. */
  write(slots: readonly (readonly string[])[]): void {
    for (const [index, entries] of slots.entries()) {
      const text = [this.#next + index, ...entries, ''].join(END).padEnd(SLOT_CHARACTERS, '0')
      this.#store.run('UPDATE journal SET entries = ? WHERE slot = ?', [text, this.#used + index])
    }
  }

  wrote(slots: number): void {
    this.#used += slots
    this.#next += slots
  }

  /** Overwrites everything. Runs in a transaction; `emptied` is called once that is committed. */
  empty(): void {
    if (this.#used === 0) return
    this.#store.run('UPDATE journal SET entries = ? WHERE slot < ?', [EMPTY, this.#used])
  }

  emptied(): void {
    this.#used = 0
  }
}

function readSlot(text: string): { readonly number: number; readonly entries: readonly string[] } {
  const [number, ...rest] = text.split(END)
  return { number: Number(number), entries: rest.slice(0, -1) }
}
