import { fromUtf8 } from '../../protocol/bytes.ts'
import { BACKSLASH, QUOTE, SPACE } from './byte-codes.ts'

/** The inside of a JSON string in bytes (RFC 8259 section 7; UTF-8 as The Unicode Standard, table 3-7). */

/** An escape sequence: its length as written, and as UTF-8 once decoded. */
interface Escape {
  readonly sourceLength: number
  readonly utf8Length: number
}

const SIMPLE: Escape = { sourceLength: 2, utf8Length: 1 }
const ONE_BYTE: Escape = { sourceLength: 6, utf8Length: 1 }
const TWO_BYTES: Escape = { sourceLength: 6, utf8Length: 2 }
const THREE_BYTES: Escape = { sourceLength: 6, utf8Length: 3 }

const SIMPLE_LETTERS = new Set(Array.from('"\\/bfnrt', (char) => char.charCodeAt(0)))

const NO_DIGIT = 16
const HEX = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16)
  return Number.isNaN(digit) ? NO_DIGIT : digit
})

/** Marks the bytes that represent themselves in a string and need no further check. */
export const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= SPACE && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
)

/** The escape whose backslash is at `at`; undefined where it is not valid. */
export function escapeAt(bytes: Uint8Array, at: number): Escape | undefined {
  const letter = bytes[at + 1] ?? 0
  if (letter !== 0x75) return SIMPLE_LETTERS.has(letter) ? SIMPLE : undefined
  let unit = 0
  for (let i = at + 2; i < at + 6; i++) {
    const digit = HEX[bytes[i] ?? 0] ?? NO_DIGIT
    if (digit === NO_DIGIT) return undefined
    unit = unit * 16 + digit
  }
  if (unit < 0x80) return ONE_BYTE
  // Half of a surrogate pair: the two escapes together become four bytes.
  if (unit < 0x800 || (unit >= 0xd800 && unit < 0xe000)) return TWO_BYTES
  return THREE_BYTES
}

/**
 * Length of the well-formed UTF-8 sequence of two to four bytes at `at`; 0 where there is none. Overlong forms,
 * surrogates and code points above U+10FFFF are not well-formed.
 */
export function utf8SequenceLength(bytes: Uint8Array, at: number): 0 | 2 | 3 | 4 {
  const lead = bytes[at] ?? 0
  const second = bytes[at + 1] ?? 0
  if (lead < 0xc2 || lead > 0xf4 || !isTail(second)) return 0
  if (lead < 0xe0) return 2
  if (!isTail(bytes[at + 2] ?? 0)) return 0
  if (lead < 0xf0) {
    if (lead === 0xe0 && second < 0xa0) return 0
    return lead === 0xed && second > 0x9f ? 0 : 3
  }
  if (!isTail(bytes[at + 3] ?? 0) || (lead === 0xf0 && second < 0x90)) return 0
  return lead === 0xf4 && second > 0x8f ? 0 : 4
}

function isTail(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf
}

/** Strings up to this length are built character by character if possible, which is faster than calling a decoder. */
const SHORT_STRING = 32

/**
 * The text of a checked string; `start` and `end` include its quotes. An unpaired surrogate escape becomes an
 * unpaired surrogate.
 */
export function decodeString(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > SHORT_STRING) return decodeAny(bytes, start, end)
  let text = ''
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at] ?? 0
    if (PLAIN[byte] !== 1) return decodeAny(bytes, start, end)
    text += String.fromCharCode(byte)
  }
  return text
}

function decodeAny(bytes: Uint8Array, start: number, end: number): string {
  return String(JSON.parse(fromUtf8(bytes.subarray(start, end))))
}
