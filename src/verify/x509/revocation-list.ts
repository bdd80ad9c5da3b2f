import { equalBytes, type Bytes } from '../../protocol/bytes.ts'
import { readSignedStructure } from './certificate.ts'
import {
  expectTag,
  malformed,
  readChildren,
  readSmallInteger,
  readTime,
  TAG,
  type Der,
} from './der.ts'

/** A version 2 certificate revocation list (RFC 5280 section 5.1). */
export interface RevocationList {
  readonly signatureAlgorithm: Bytes
  readonly signature: Bytes
  readonly signed: Bytes
  readonly issuer: Bytes
  /** Milliseconds since 1970; `nextUpdate`, too. */
  readonly thisUpdate: number
  readonly nextUpdate: number
  /** The serial numbers of revoked certificates, as contents of INTEGERs. */
  readonly serials: readonly Bytes[]
}

/** Reads a list in DER. One without a next update is refused: it would never expire. */
export function readRevocationList(bytes: Bytes): RevocationList {
  const { content, ...outside } = readSignedStructure(bytes)
  const [version, algorithm, issuer, thisUpdate, nextUpdate, ...rest] = readChildren(content)
  const [entries, ...extensions] = rest[0]?.tag === TAG.sequence ? rest : [undefined, ...rest]
  if (readSmallInteger(version) !== 1) throw malformed('not a version 2 revocation list')
  if (!equalBytes(expectTag(algorithm, TAG.sequence).whole, outside.signatureAlgorithm)) {
    throw malformed('signature algorithm stated in two ways')
  }
  if (extensions.length > 1 || (extensions[0] !== undefined && extensions[0].tag !== 0xa0)) {
    throw malformed('revocation list of an unknown form')
  }
  return {
    ...outside,
    issuer: expectTag(issuer, TAG.sequence).whole,
    thisUpdate: readTime(thisUpdate),
    nextUpdate: readTime(nextUpdate),
    serials: entries === undefined ? [] : readChildren(entries).map(readSerial),
  }
}

function readSerial(entry: Der): Bytes {
  const [serial] = readChildren(expectTag(entry, TAG.sequence))
  return expectTag(serial, TAG.integer).body
}
