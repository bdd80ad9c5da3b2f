/** What one JSON text may hold if it is parsed in one go. */
export interface ValueLimits {
  /** Memory of all values, by estimate, bytes, without the characters of strings. */
  readonly memoryBytes: number
  /** Different names of members, about: each takes a hundred times as long as a number. */
  readonly names: number
}

/** About what values take once parsed, bytes: measured in V8. */
const CONTAINER_BYTES = 64
const VALUE_BYTES = 16

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const SPACE = 0x20

/** Whether a text that may be JSON holds more than this. Looking takes a few milliseconds for each MiB. */
export function holdsMoreThan(
  { memoryBytes, names: most }: ValueLimits,
  text: Uint8Array,
): boolean {
  const names = new DifferentNames()
  let memory = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) {
      const start = at
      at = endOfString(text, start)
      if (isName(text, at) && names.add(text, start, at) > most) return true
    } else if (byte === COMMA) memory += VALUE_BYTES
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) memory += CONTAINER_BYTES
    if (memory > memoryBytes) return true
  }
  return false
}

/** The position of the closing quote; behind the text where there is none. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}

/** Whether the string that ends here is the name of a member. White space is skipped, and so is what JSON does not allow. */
function isName(text: Uint8Array, end: number): boolean {
  let at = end + 1
  while (at < text.length && (text[at] ?? 0) <= SPACE) at += 1
  return text[at] === COLON
}

/** Of as many different names that are counted as this, some four in a hundred are taken for one seen before. */
const PLACES = 1024 * 1024

/** Longer names all count as different: reading them would take longer than it is worth. */
const MAX_NAME_BYTES = 64

/** Counts different names, by hashes of them. */
class DifferentNames {
  readonly #seen = new Uint8Array(PLACES)
  #count = 0

  /** @returns how many there are */
  add(text: Uint8Array, start: number, end: number): number {
    if (end - start > MAX_NAME_BYTES) return (this.#count += 1)
    // FNV-1a.
    let hash = 0x811c9dc5
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (text[at] ?? 0), 0x01000193)
    const place = (hash ^ (hash >>> 16)) & (PLACES - 1)
    if (this.#seen[place] === 0) {
      this.#seen[place] = 1
      this.#count += 1
    }
    return this.#count
  }
}
