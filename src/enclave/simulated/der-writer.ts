import { concatBytes, fromHex, utf8, type Bytes } from '../../protocol/bytes.ts'

/** Writes ASN.1 in DER (X.690): only the types used in certificates and revocation lists. */

export function sequence(...parts: readonly Bytes[]): Bytes {
  return element(0x30, ...parts)
}

export function setOf(...parts: readonly Bytes[]): Bytes {
  return element(0x31, ...parts)
}

/** A non-negative INTEGER. */
export function integer(value: number | bigint): Bytes {
  const digits = value.toString(16)
  const bytes = fromHex(digits.padStart(digits.length + (digits.length % 2), '0'))
  return element(0x02, (bytes[0] ?? 0) > 0x7f ? concatBytes(new Uint8Array(1), bytes) : bytes)
}

export function boolean(value: boolean): Bytes {
  return element(0x01, Uint8Array.of(value ? 0xff : 0))
}

/** An OBJECT IDENTIFIER in dotted form. */
export function objectId(dotted: string): Bytes {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(0x06, Uint8Array.from([40 * first + second, ...rest.flatMap(base128)]))
}

function base128(arc: number): number[] {
  const groups = [arc & 0x7f]
  for (let rest = arc >>> 7; rest > 0; rest >>>= 7) groups.unshift((rest & 0x7f) | 0x80)
  return groups
}

export function octetString(bytes: Bytes): Bytes {
  return element(0x04, bytes)
}

/** A BIT STRING of whole bytes, except for the unused low bits of the last one. */
export function bitString(bytes: Bytes, unusedBits = 0): Bytes {
  return element(0x03, Uint8Array.of(unusedBits), bytes)
}

export function nothing(): Bytes {
  return element(0x05)
}

export function utf8String(text: string): Bytes {
  return element(0x0c, utf8(text))
}

export function ia5String(text: string): Bytes {
  return element(0x16, utf8(text))
}

/** UTCTime before 2050 and GeneralizedTime from then on (RFC 5280 section 4.1.2.5), to the second. */
export function time(date: Date): Bytes {
  const digits = date.toISOString().replace(/\.\d+/, '').replaceAll(/[-:T]/g, '')
  return date.getUTCFullYear() < 2050
    ? element(0x17, utf8(digits.slice(2)))
    : element(0x18, utf8(digits))
}

/** A constructed, context-specific element: `[tag] EXPLICIT`. */
export function explicit(tag: number, ...parts: readonly Bytes[]): Bytes {
  return element(0xa0 + tag, ...parts)
}

function element(tag: number, ...parts: readonly Bytes[]): Bytes {
  const body = concatBytes(...parts)
  return concatBytes(Uint8Array.from([tag, ...lengthOctets(body.length)]), body)
}

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length]
  const octets: number[] = []
  for (let rest = length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff)
  return [0x80 + octets.length, ...octets]
}
