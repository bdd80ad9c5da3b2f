import type { Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'

/**
 * Reads ASN.1 in DER (X.690), strictly: definite lengths in their shortest form, no trailing bytes. Forms that
 * certificates never use (long tags, indefinite lengths) are refused. All slices are views of the input.
 */
export interface Der {
  readonly tag: number
  readonly body: Bytes
  /** Tag, length and body. */
  readonly whole: Bytes
}

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

export function malformed(reason: string): MalformedEvidence {
  return new MalformedEvidence('X.509 structure', reason)
}

/** Reads the single element that the bytes consist of. */
export function readDer(bytes: Bytes, tag: number): Der {
  const element = readElement(bytes)
  if (element.whole.length !== bytes.length) throw malformed('bytes after the end')
  return expectTag(element, tag)
}

/** All elements inside a constructed one. */
export function readChildren({ body }: Der): Der[] {
  const children: Der[] = []
  for (let rest = body; rest.length > 0;) {
    const element = readElement(rest)
    children.push(element)
    rest = rest.subarray(element.whole.length)
  }
  return children
}

/** Returns the element if it is present and has the tag; throws otherwise. */
export function expectTag(element: Der | undefined, tag: number): Der {
  if (element?.tag !== tag) throw malformed(`no element of tag ${tag} where one must be`)
  return element
}

function readElement(bytes: Bytes): Der {
  const [tag, first] = bytes
  if (tag === undefined || first === undefined) throw malformed('cut short')
  if ((tag & 0x1f) === 0x1f) throw malformed('long tag')
  const lengthOctets = first < 0x80 ? 0 : first & 0x7f
  const length = lengthOctets === 0 ? first : readLength(bytes.subarray(2, 2 + lengthOctets))
  const start = 2 + lengthOctets
  if (first === 0x80 || bytes.length - start < length) throw malformed('length beyond the end')
  return {
    tag,
    body: bytes.subarray(start, start + length),
    whole: bytes.subarray(0, start + length),
  }
}

function readLength(octets: Bytes): number {
  const length = octets.reduce((value, octet) => value * 256 + octet, 0)
  if (octets.length > 3 || octets[0] === 0 || length < 0x80) throw malformed('length not in DER')
  return length
}

/** A non-negative INTEGER of up to four bytes. */
export function readSmallInteger(element: Der | undefined): number {
  const { body } = expectTag(element, TAG.integer)
  const [first = 0, second = 0] = body
  const padded = body.length > 1 && first === 0 && second < 0x80
  if (body.length === 0 || body.length > 5 || first > 0x7f || padded) {
    throw malformed('integer out of range')
  }
  return body.reduce((value, octet) => value * 256 + octet, 0)
}

export function readBoolean(element: Der): boolean {
  const { body } = expectTag(element, TAG.boolean)
  if (body.length !== 1 || (body[0] !== 0 && body[0] !== 0xff))
    throw malformed('boolean not in DER')
  return body[0] === 0xff
}

/** The bytes of a BIT STRING without unused bits. */
export function readBitString(element: Der | undefined): Bytes {
  const { body } = expectTag(element, TAG.bitString)
  if (body[0] !== 0) throw malformed('bit string with unused bits')
  return body.subarray(1)
}

/** An OBJECT IDENTIFIER in dotted form. */
export function readObjectId(element: Der | undefined): string {
  const { body } = expectTag(element, TAG.objectId)
  const arcs: number[] = []
  let arc = 0
  let open = false
  for (const octet of body) {
    if (!open && octet === 0x80) throw malformed('object identifier not in DER')
    arc = arc * 128 + (octet & 0x7f)
    open = octet >= 0x80
    if (arc > 0xffff_ffff) throw malformed('object identifier out of range')
    if (open) continue
    arcs.push(arc)
    arc = 0
  }
  const [head] = arcs
  if (open || head === undefined) throw malformed('object identifier cut short')
  const root = Math.min(Math.floor(head / 40), 2)
  return [root, head - 40 * root, ...arcs.slice(1)].join('.')
}

/** A UTCTime or GeneralizedTime to the second, as milliseconds since 1970 (RFC 5280 section 4.1.2.5). */
export function readTime(element: Der | undefined): number {
  const text = String.fromCharCode(...(element?.body.subarray(0, 16) ?? []))
  const short = element?.tag === TAG.utcTime && text.length === 13
  if (!short && !(element?.tag === TAG.generalizedTime && text.length === 15)) {
    throw malformed('time of an unknown form')
  }
  const full = short ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full)
  if (parts === null) throw malformed('time of an unknown form')
  const [, year, month, day, hour, minute, second] = parts
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const time = Date.parse(iso)
  if (!Number.isFinite(time) || new Date(time).toISOString() !== iso)
    throw malformed('no such time')
  return time
}
