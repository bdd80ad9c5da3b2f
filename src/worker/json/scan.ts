import { fromUtf8 } from '../../protocol/bytes.ts'
import { keepShape } from '../../protocol/keep-shape.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isBlank,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './byte-codes.ts'
import { decodeString, escapeAt, PLAIN, utf8SequenceLength } from './string.ts'

/**
 * A strict reader of JSON text (RFC 8259) in its original bytes. One pass checks the grammar and the UTF-8 and finds the
 * positions of values; a value is only built on request. It accepts what `JSON.parse` accepts, except for the depth limit.
 */

/** The position of a value in the bytes: `start` inclusive, `end` exclusive, without surrounding white space. */
export interface Range {
  readonly start: number
  readonly end: number
}

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** The text is not valid JSON, or nested too deeply. The message contains a position, never the text. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError'
}

/** Maximum nesting (RFC 8259 section 9 allows a limit): each level costs stack frames. */
export const MAX_NESTING = 512

const KINDS: Readonly<Record<number, JsonKind>> = {
  [OPEN_BRACE]: 'object',
  [OPEN_BRACKET]: 'array',
  [QUOTE]: 'string',
  0x74: 'boolean',
  0x66: 'boolean',
  0x6e: 'null',
}
const LITERALS: Readonly<Record<number, string>> = { 0x74: 'true', 0x66: 'false', 0x6e: 'null' }

/** Stands for the end of the text where a byte is expected; never occurs in JSON. */
const END = 0

/**
 * Reads one JSON text from beginning to end. Every method reads the value at the cursor and moves the cursor behind
 * it.
 * @throws JsonSyntaxError from every method, when the text is not valid JSON
 */
export class JsonCursor {
  readonly #bytes: Uint8Array
  #at: number
  #depth = 0
  /** Length of the string read last once decoded, in bytes of UTF-8. */
  #textBytes = 0

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = bytes
    this.#at = start
  }

  static {
    keepShape(new JsonCursor(new Uint8Array()))
  }

  /** The cursor's position; inside a visit it is where the value starts. */
  get at(): number {
    return this.#at
  }

  /** The kind of the next value, by its first byte; the value itself is not checked yet. */
  peek(): JsonKind {
    const byte = this.#next()
    if (byte === MINUS || isDigit(byte)) return 'number'
    return KINDS[byte] ?? this.#fail()
  }

  /** Skips the value and returns its position. */
  skip(): Range {
    this.#next()
    const start = this.#at
    this.#value()
    return { start, end: this.#at }
  }

  /** The text of a string. An unpaired surrogate escape is legal and becomes an unpaired surrogate. */
  string(): string {
    this.#next()
    const start = this.#at
    this.#string()
    return decodeString(this.#bytes, start, this.#at)
  }

  /** Skips a string and returns the length of its text in bytes of UTF-8. */
  textBytes(): number {
    this.#next()
    this.#string()
    return this.#textBytes
  }

  /**
   * Visits the members of an object. `visit` gets each member's decoded name, repeated names included, and the
   * position of its first quote, and may read the value; otherwise the value is skipped.
   */
  object(visit?: (name: string, start: number) => void): Range {
    const start = this.#enter(OPEN_BRACE)
    if (!this.#closes(CLOSE_BRACE)) {
      do {
        this.#next()
        const nameStart = this.#at
        this.#string()
        const name = visit === undefined ? '' : decodeString(this.#bytes, nameStart, this.#at)
        this.#take(COLON)
        this.#next()
        const valueStart = this.#at
        visit?.(name, nameStart)
        if (this.#at === valueStart) this.#value()
      } while (this.#continues(CLOSE_BRACE))
    }
    return { start, end: this.#at }
  }

  /** Visits the elements of an array. `visit` gets each element's index and may read the element. */
  array(visit?: (index: number) => void): Range {
    const start = this.#enter(OPEN_BRACKET)
    if (!this.#closes(CLOSE_BRACKET)) {
      let index = 0
      do {
        this.#next()
        const elementStart = this.#at
        visit?.(index++)
        if (this.#at === elementStart) this.#value()
      } while (this.#continues(CLOSE_BRACKET))
    }
    return { start, end: this.#at }
  }

  /** Checks that only white space follows. */
  end(): void {
    this.#next()
    if (this.#at < this.#bytes.length) this.#fail()
  }

  #value(): void {
    const byte = this.#next()
    if (byte === QUOTE) this.#string()
    else if (byte === OPEN_BRACE) this.object()
    else if (byte === OPEN_BRACKET) this.array()
    else if (byte === MINUS || isDigit(byte)) this.#number()
    else this.#literal(LITERALS[byte] ?? this.#fail())
  }

  #enter(bracket: number): number {
    this.#take(bracket)
    this.#depth += 1
    if (this.#depth > MAX_NESTING) {
      throw new JsonSyntaxError(`nested deeper than ${MAX_NESTING} levels`)
    }
    return this.#at - 1
  }

  #closes(bracket: number): boolean {
    if (this.#next() !== bracket) return false
    this.#at += 1
    this.#depth -= 1
    return true
  }

  #continues(bracket: number): boolean {
    if (this.#closes(bracket)) return false
    this.#take(COMMA)
    return true
  }

  #take(byte: number): void {
    if (this.#next() !== byte) this.#fail()
    this.#at += 1
  }

  #string(): void {
    this.#take(QUOTE)
    const bytes = this.#bytes
    const start = this.#at
    let at = start
    let surplus = 0
    for (;;) {
      while (PLAIN[bytes[at] ?? END] === 1) at += 1
      const byte = bytes[at] ?? END
      if (byte === QUOTE) break
      this.#at = at
      if (byte === BACKSLASH) {
        const escape = escapeAt(bytes, at) ?? this.#fail()
        surplus += escape.sourceLength - escape.utf8Length
        at += escape.sourceLength
      } else {
        at += utf8SequenceLength(bytes, at) || this.#fail()
      }
    }
    this.#textBytes = at - start - surplus
    this.#at = at + 1
  }

  #number(): void {
    if (this.#bytes[this.#at] === MINUS) this.#at += 1
    if (this.#bytes[this.#at] === 0x30) this.#at += 1
    else this.#digits()
    if (this.#bytes[this.#at] === 0x2e) {
      this.#at += 1
      this.#digits()
    }
    if (((this.#bytes[this.#at] ?? END) | 0x20) !== 0x65) return
    this.#at += 1
    const sign = this.#bytes[this.#at]
    if (sign === 0x2b || sign === MINUS) this.#at += 1
    this.#digits()
  }

  #digits(): void {
    const start = this.#at
    while (isDigit(this.#bytes[this.#at] ?? END)) this.#at += 1
    if (this.#at === start) this.#fail()
  }

  #literal(word: string): void {
    for (let i = 0; i < word.length; i++) {
      if (this.#bytes[this.#at] !== word.charCodeAt(i)) this.#fail()
      this.#at += 1
    }
  }

  /** Skips white space and returns the byte after it. */
  #next(): number {
    for (;;) {
      const byte = this.#bytes[this.#at] ?? END
      if (!isBlank(byte)) return byte
      this.#at += 1
    }
  }

  #fail(): never {
    throw new JsonSyntaxError(`unexpected input at byte ${this.#at}`)
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

/** The value in `range`. For small values whose text has been checked. */
export function valueOf(bytes: Uint8Array, range: Range): unknown {
  return JSON.parse(fromUtf8(bytes.subarray(range.start, range.end)))
}

/** Whether the checked value in `range` is `false`. */
export function isFalse(bytes: Uint8Array, range: Range): boolean {
  return bytes[range.start] === 0x66
}

/** Whether the checked value in `range` is `null`. */
export function isNull(bytes: Uint8Array, range: Range): boolean {
  return bytes[range.start] === 0x6e
}
