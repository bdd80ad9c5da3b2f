import type { Bytes } from '../../../protocol/bytes.ts'
import type { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { ByteCursor } from './byte-cursor.ts'

/** Nesting beyond this is refused; an attestation has five levels. */
const MAX_DEPTH = 8

/**
 * Decodes one MessagePack value that nothing follows. Libraries reserve memory for every list according to its header,
 * nested lists included, so a short hostile document costs them gigabytes; here nothing is reserved. Floating point
 * numbers, extensions, and keys that are repeated or not text are refused: attestations have none.
 *
 * Source: the MessagePack specification.
 * @throws MalformedEvidence when it cannot be decoded
 */
export function decodeMessagePack(input: Bytes, document: string): unknown {
  const cursor = new ByteCursor(input, document)
  const value = new MessagePackReader(cursor).value(0)
  cursor.end()
  return value
}

/** Types whose first byte is only the type, with the size of the number that follows it, bytes. */
const TEXTS = new Map([
  [0xd9, 1],
  [0xda, 2],
  [0xdb, 4],
])
const BINARIES = new Map([
  [0xc4, 1],
  [0xc5, 2],
  [0xc6, 4],
])
const LISTS = new Map([
  [0xdc, 2],
  [0xdd, 4],
])
const MAPS = new Map([
  [0xde, 2],
  [0xdf, 4],
])
const NUMBERS = new Map([
  [0xcc, 1],
  [0xcd, 2],
  [0xce, 4],
  [0xcf, 8],
])
const CONSTANTS = new Map<number, null | boolean>([
  [0xc0, null],
  [0xc2, false],
  [0xc3, true],
])

class MessagePackReader {
  readonly #cursor: ByteCursor

  constructor(cursor: ByteCursor) {
    this.#cursor = cursor
  }

  value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw this.#unsupported()
    const first = this.#cursor.bigEndian(1)
    if (first < 0x80) return first
    if (first < 0x90) return this.#map(first & 0x0f, depth)
    if (first < 0xa0) return this.#list(first & 0x0f, depth)
    if (first < 0xc0) return this.#cursor.text(first & 0x1f)
    const constant = CONSTANTS.get(first)
    if (constant !== undefined) return constant
    return this.#sized(first, depth)
  }

  #sized(first: number, depth: number): unknown {
    const length = (types: ReadonlyMap<number, number>): number | undefined => {
      const bytes = types.get(first)
      return bytes === undefined ? undefined : this.#cursor.bigEndian(bytes)
    }
    const [text, binary] = [length(TEXTS), length(BINARIES)]
    if (text !== undefined) return this.#cursor.text(text)
    if (binary !== undefined) return this.#cursor.take(binary)
    const [list, map] = [length(LISTS), length(MAPS)]
    if (list !== undefined) return this.#list(list, depth)
    if (map !== undefined) return this.#map(map, depth)
    const number = length(NUMBERS)
    if (number === undefined || !Number.isSafeInteger(number)) throw this.#unsupported()
    return number
  }

  /**
   * Every item takes at least one byte, so reading fails early if the list claims more items than the input has bytes.
   */
  #list(count: number, depth: number): unknown[] {
    const items: unknown[] = []
    for (let index = 0; index < count; index++) items.push(this.value(depth + 1))
    return items
  }

  #map(count: number, depth: number): Record<string, unknown> {
    const members = new Map<string, unknown>()
    for (let index = 0; index < count; index++) {
      const name = this.value(depth + 1)
      if (typeof name !== 'string' || members.has(name)) throw this.#unsupported()
      members.set(name, this.value(depth + 1))
    }
    return Object.fromEntries(members)
  }

  #unsupported(): MalformedEvidence {
    return this.#cursor.fault('not MessagePack that an attestation is made of')
  }
}
