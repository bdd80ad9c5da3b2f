import { numberOf, textOf } from '../storage/row.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { FORMER_SLOT_CHARACTERS } from './former-journal.ts'

/** Characters of a slot: with its row it fills one page of SQLite (4,096 bytes), without an overflow page. */
const SLOT_CHARACTERS = 4_056

/** Room for the head of a slot: its number, and the length of its content. */
const HEAD_CHARACTERS = 24

const CHUNK_CHARACTERS = SLOT_CHARACTERS - HEAD_CHARACTERS

/** 1,024 slots: the journal holds at most four megabytes of settlements that are not folded. */
const SLOTS = 1_024

/** Slots of the longest entry that the journal takes; longer ones are settled by SQL. */
const MAX_ENTRY_SLOTS = 64

/** An empty slot. It begins with 0; a used one begins with its number, and so with another digit. */
const EMPTY = '0'.repeat(SLOT_CHARACTERS)

/** A text that differs from an empty slot, but also counts as empty. */
const UNLIKE_EMPTY = '0'.padEnd(SLOT_CHARACTERS, '1')

/** Ends an entry, and the head of a slot; JSON text contains no newline. */
const END = '\n'

/** The row that stores the number of the last folded slot. It begins with 0 like an empty slot. */
const FOLDED = -1
const FOLDED_DIGITS = 20

/**
 * The settlements that are not in the tables yet, on disk. The journal has a fixed number of rows of a fixed length, one per
 * page, which are rewritten in place: its receipts leave no bytes behind in the file (docs/storage.md, "Erasure"), and a
 * commit appends nothing. The entries of one commit are one text, in as many slots as it needs.
 *
 * A fold records the number of the last slot whose content is in the tables; writing then starts again at the first slot.
 * Slots that the fold leaves are overwritten by later entries or by the next fold.
 */
export class Journal {
  readonly #store: Pick<SyncStore, 'run'>
  /** Number of slots with entries that are not folded; they come first. */
  #used = 0
  /** Number of slots that are not empty; they come first. */
  #filled = 0
  /** Value of `#filled` after the commit of the fold in progress. */
  #left = 0
  /** The number of the next slot to be written. Each write of a slot gets a new number. */
  #next = 1

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  /** Creates the slots at the first start. Runs in a transaction. */
  create(): void {
    const insert = 'INSERT INTO journal (slot, entries) VALUES (?, ?) ON CONFLICT (slot) DO NOTHING'
    const [row] = this.#store.run('SELECT COUNT(*) AS rows FROM journal', []).rows
    if (row !== undefined && numberOf(row, 'rows') > SLOTS) return
    this.#store.run(insert, [FOLDED, '0'.repeat(FOLDED_DIGITS)])
    for (let slot = 0; slot < SLOTS; slot++) this.#store.run(insert, [slot, EMPTY])
  }

  /**
   * Writes and restores as many slots as a settlement needs: an engine whose disk has no room for them must not admit any
   * request. Runs in a transaction.
   */
  tryWrite(): void {
    const write = `UPDATE journal SET entries = ? WHERE slot >= ? AND entries < '1'`
    // Two updates, because SQLite writes only pages that were changed, even if they were changed back.
    for (const text of [UNLIKE_EMPTY, EMPTY]) this.#store.run(write, [text, SLOTS - 8])
  }

  /**
   * The entries that were not folded when the previous process ended, oldest first.
   * @throws Error when the journal is damaged
   */
  read(): readonly string[] {
    const find = `SELECT slot, entries FROM journal
      WHERE slot >= 0 AND entries >= '1' AND LENGTH(entries) <> ?`
    const slots = this.#store.run(find, [FORMER_SLOT_CHARACTERS]).rows.map((row) => ({
      slot: numberOf(row, 'slot'),
      ...readSlot(textOf(row, 'entries')),
    }))
    const folded = this.#folded()
    const live = slots.filter(({ number }) => number > folded)
    live.sort((one, other) => one.number - other.number)
    if (live.some(({ number }, index) => number !== folded + 1 + index)) throw damaged()
    this.#used = firstBeyond(live)
    this.#filled = firstBeyond(slots)
    this.#next = Math.max(folded, ...slots.map(({ number }) => number)) + 1
    const text = live.map(({ chunk }) => chunk).join('')
    return text === '' ? [] : text.slice(0, -END.length).split(END)
  }

  /** Whether the journal can hold this entry: it is short enough and has only printable ASCII characters. */
  takes(entry: string): boolean {
    return entry.length < MAX_ENTRY_SLOTS * CHUNK_CHARACTERS && !/[^ -~]/.test(entry)
  }

  /** Divides the text of some entries into the contents of slots. */
  pack(entries: readonly string[]): readonly string[] {
    const text = `${entries.join(END)}${END}`
    const chunks: string[] = []
    for (let start = 0; start < text.length; start += CHUNK_CHARACTERS) {
      chunks.push(text.slice(start, start + CHUNK_CHARACTERS))
    }
    return chunks
  }

  /** Divides entries into groups that each fit an empty journal. */
  divide<Owner>(texts: ReadonlyMap<Owner, string>): readonly ReadonlyMap<Owner, string>[] {
    const parts: Map<Owner, string>[] = []
    let room = 0
    for (const [owner, text] of texts) {
      const needs = text.length + END.length
      if (needs > room) {
        parts.push(new Map())
        room = SLOTS * CHUNK_CHARACTERS
      }
      parts.at(-1)?.set(owner, text)
      room -= needs
    }
    return parts
  }

  /** Whether there is room to write these entries in one commit. */
  hasRoom(entries: readonly string[]): boolean {
    const characters = entries.reduce((sum, { length }) => sum + length + END.length, 0)
    return this.#used + Math.ceil(characters / CHUNK_CHARACTERS) <= SLOTS
  }

  /** Writes the slots of a commit. Runs in a transaction; after its commit the caller calls `wrote`. */
  write(chunks: readonly string[]): void {
    for (const [index, chunk] of chunks.entries()) {
      const text = `${this.#next + index} ${chunk.length}${END}${chunk}`.padEnd(
        SLOT_CHARACTERS,
        '0',
      )
      this.#store.run('UPDATE journal SET entries = ? WHERE slot = ?', [text, this.#used + index])
    }
  }

  wrote(chunks: readonly string[]): void {
    this.#used += chunks.length
    this.#next += chunks.length
    this.#filled = Math.max(this.#filled, this.#used)
  }

  /** Whether slots hold entries that are already in the tables. */
  get hasLeftovers(): boolean {
    return this.#filled > this.#used
  }

  /**
   * Records that every entry is in the tables, and overwrites slots that an earlier fold has left. Runs in a transaction;
   * after its commit the caller calls `folded`.
   * @param leave whether the slots of the entries just folded may stay until later entries or the next fold overwrite them
   */
  fold(leave: boolean): void {
    if (this.#used > 0) {
      const last = String(this.#next - 1).padStart(FOLDED_DIGITS, '0')
      this.#store.run('UPDATE journal SET entries = ? WHERE slot = ?', [last, FOLDED])
    }
    this.#left = leave ? this.#used : 0
    if (this.#filled > this.#left) {
      const overwrite = 'UPDATE journal SET entries = ? WHERE slot >= ? AND slot < ?'
      this.#store.run(overwrite, [EMPTY, this.#left, this.#filled])
    }
  }

  folded(): void {
    this.#filled = this.#left
    this.#used = 0
  }

  #folded(): number {
    const find = 'SELECT entries FROM journal WHERE slot = ?'
    const [row] = this.#store.run(find, [FOLDED]).rows
    const number = row === undefined ? 0 : Number(textOf(row, 'entries'))
    // With NaN, every slot would count as folded, and its settlements would be lost.
    if (!Number.isSafeInteger(number)) throw damaged()
    return number
  }
}

function readSlot(text: string): { readonly number: number; readonly chunk: string } {
  const [head = ''] = text.split(END, 1)
  const [number = Number.NaN, length = Number.NaN] = head.split(' ').map(Number)
  const start = head.length + END.length
  const chunk = text.slice(start, start + length)
  if (!Number.isSafeInteger(number) || chunk.length !== length) throw damaged()
  return { number, chunk }
}

function firstBeyond(slots: readonly { readonly slot: number }[]): number {
  return Math.max(-1, ...slots.map(({ slot }) => slot)) + 1
}

function damaged(): Error {
  return new Error('the journal of the ledger is damaged')
}
