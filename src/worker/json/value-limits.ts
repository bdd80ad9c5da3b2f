import { BACKSLASH, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE } from './byte-codes.ts'
import { CONTAINER_BYTES, VALUE_BYTES } from './value-memory.ts'

/** Limits of a JSON text that is parsed in one go. */
export interface ValueLimits {
  /** Memory of all values, by estimate, bytes, without the characters of strings. */
  readonly memoryBytes: number
  /** Number of different member names: each takes a hundred times as long to parse as a number. */
  readonly names: number
}

/**
 * Whether a text that may be JSON exceeds the limits. The scan takes at most a few milliseconds per MiB, less in long
 * strings.
 */
export function holdsMoreThan(
  { memoryBytes, names: most }: ValueLimits,
  text: Uint8Array,
): boolean {
  const names = new DifferentNames(text)
  let memory = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) {
      const start = at
      at = endOfString(text, start)
      if (isName(text, at) && names.add(start + 1, at) > most) return true
    } else if (byte === COMMA) memory += VALUE_BYTES
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) memory += CONTAINER_BYTES
    if (memory > memoryBytes) return true
  }
  return false
}

/** How many bytes of a string are read one by one before a native search, whose start takes about as long. */
const NEAR_BYTES = 32

/** The position of the closing quote; after the text where there is none. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1
  for (;;) {
    const near = Math.min(at + NEAR_BYTES, text.length)
    while (at < near && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
    if (at >= text.length || text[at] === QUOTE) return at
    const quote = text.indexOf(QUOTE, at)
    if (quote === -1) return text.length
    if (!isEscaped(text, at, quote)) return quote
    at = quote + 1
  }
}

/** Whether a quote follows an odd number of backslashes; no escape sequence spans the offset `from`. */
function isEscaped(text: Uint8Array, from: number, quote: number): boolean {
  let at = quote
  while (at > from && text[at - 1] === BACKSLASH) at -= 1
  return (quote - at) % 2 === 1
}

/**
 * Whether the string that ends here is a member's name. Skips white space, and control characters that JSON does not allow.
 */
function isName(text: Uint8Array, end: number): boolean {
  let at = end + 1
  while (at < text.length && (text[at] ?? 0) <= SPACE) at += 1
  return text[at] === COLON
}

/** Slots of the hash table: many more than names are counted, so that a name soon finds a free one. */
const PLACES = 256 * 1024

/** Longer names all count as different: comparing them would cost more than it is worth. */
const MAX_NAME_BYTES = 64

/**
 * Maximum number of slots in which a name is looked for. A name that finds others in all of them counts as different each
 * time, which happens only where names were made to have similar hashes.
 */
const MAX_TRIES = 16

/** Counts the different member names in a text, by their bytes. */
class DifferentNames {
  readonly #text: Uint8Array
  /** The offset of the name in each slot; 0: the slot is free. No name begins at 0, because its quote precedes it. */
  readonly #seen = new Int32Array(PLACES)
  #count = 0

  constructor(text: Uint8Array) {
    this.#text = text
  }

  /**
   * Adds the name that begins at `start` and whose closing quote is at `end`.
   * @returns the number of different names so far
   */
  add(start: number, end: number): number {
    if (end - start <= MAX_NAME_BYTES) {
      const first = this.#hash(start, end)
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const place = (first + tries) & (PLACES - 1)
        const seen = this.#seen[place] ?? 0
        if (seen === 0) {
          this.#seen[place] = start
          break
        }
        if (this.#isSame(seen, start, end)) return this.#count
      }
    }
    return (this.#count += 1)
  }

  /** The FNV-1a hash of a name. */
  #hash(start: number, end: number): number {
    let hash = 0x811c9dc5
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (this.#text[at] ?? 0), 0x01000193)
    return hash ^ (hash >>> 16)
  }

  /** Compares the closing quote, too, so that a longer name with the same beginning is different. */
  #isSame(seen: number, start: number, end: number): boolean {
    for (let at = start; at <= end; at++) {
      if (this.#text[seen + at - start] !== this.#text[at]) return false
    }
    return true
  }
}
