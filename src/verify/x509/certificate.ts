import { equalBytes, fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import {
  expectTag,
  malformed,
  readBitString,
  readBoolean,
  readChildren,
  readDer,
  readObjectId,
  readSmallInteger,
  readTime,
  TAG,
  type Der,
} from './der.ts'

/** The parts of a version 3 certificate (RFC 5280 section 4.1) that attestation needs. */
export interface Certificate {
  readonly serial: Bytes
  /** AlgorithmIdentifier in DER; it must be the same inside the signed content and next to it. */
  readonly signatureAlgorithm: Bytes
  readonly signature: Bytes
  /** The bytes that the signature covers. */
  readonly signed: Bytes
  readonly issuer: Bytes
  readonly issuerName: string
  readonly subject: Bytes
  readonly subjectName: string
  /** Milliseconds since 1970; `notAfter`, too. */
  readonly notBefore: number
  readonly notAfter: number
  /** SubjectPublicKeyInfo in DER. */
  readonly spki: Bytes
  readonly extensions: readonly CertificateExtension[]
}

export interface CertificateExtension {
  readonly id: string
  readonly critical: boolean
  readonly value: Bytes
}

/** The outer structure of certificates and revocation lists. */
export interface SignedStructure {
  readonly content: Der
  readonly signed: Bytes
  readonly signatureAlgorithm: Bytes
  readonly signature: Bytes
}

/**
 * Parses exactly one certificate in DER.
 * @throws MalformedEvidence when it is not a version 3 certificate in strict DER
 */
export function readCertificate(bytes: Bytes): Certificate {
  const { content, ...outside } = readSignedStructure(bytes)
  const [version, serial, algorithm, issuer, validity, subject, spki, extensions, ...rest] =
    readChildren(content)
  const [versionNumber] = readChildren(expectTag(version, 0xa0))
  if (readSmallInteger(versionNumber) !== 2 || rest.length > 0) {
    throw malformed('not a version 3 certificate')
  }
  const [notBefore, notAfter, ...more] = readChildren(expectTag(validity, TAG.sequence))
  const inner = expectTag(algorithm, TAG.sequence).whole
  if (more.length > 0 || !equalBytes(inner, outside.signatureAlgorithm)) {
    throw malformed('signature algorithm stated in two ways')
  }
  return {
    ...outside,
    serial: expectTag(serial, TAG.integer).body,
    issuer: expectTag(issuer, TAG.sequence).whole,
    issuerName: commonName(expectTag(issuer, TAG.sequence)),
    subject: expectTag(subject, TAG.sequence).whole,
    subjectName: commonName(expectTag(subject, TAG.sequence)),
    notBefore: readTime(notBefore),
    notAfter: readTime(notAfter),
    spki: expectTag(spki, TAG.sequence).whole,
    extensions: readExtensions(expectTag(extensions, 0xa3)),
  }
}

/** Splits `SEQUENCE { content, algorithm, signature }`. */
export function readSignedStructure(bytes: Bytes): SignedStructure {
  const [content, algorithm, signature, ...rest] = readChildren(readDer(bytes, TAG.sequence))
  if (rest.length > 0) throw malformed('more than content, algorithm and signature')
  const signed = expectTag(content, TAG.sequence)
  return {
    content: signed,
    signed: signed.whole,
    signatureAlgorithm: expectTag(algorithm, TAG.sequence).whole,
    signature: readBitString(signature),
  }
}

/** The common name (2.5.4.3) of a distinguished name, which must have exactly one. */
function commonName(name: Der): string {
  const names = readChildren(name)
    .flatMap((set) => readChildren(expectTag(set, TAG.set)))
    .map((attribute) => readChildren(expectTag(attribute, TAG.sequence)))
    .filter(([id]) => readObjectId(id) === '2.5.4.3')
  const [value] = names
  const text = value?.[1]
  const textual = text?.tag === TAG.utf8String || text?.tag === TAG.printableString
  if (names.length !== 1 || text === undefined || !textual) throw malformed('no common name')
  try {
    return fromUtf8(text.body)
  } catch {
    throw malformed('common name not UTF-8')
  }
}

function readExtensions(explicit: Der): CertificateExtension[] {
  const [list, ...rest] = readChildren(explicit)
  if (rest.length > 0) throw malformed('more than one list of extensions')
  return readChildren(expectTag(list, TAG.sequence)).map((extension) => {
    const parts = readChildren(expectTag(extension, TAG.sequence))
    const [id, flag] = parts
    const critical = parts.length === 3 && flag !== undefined && readBoolean(flag)
    if (parts.length !== (critical ? 3 : 2)) throw malformed('extension of the wrong form')
    return {
      id: readObjectId(id),
      critical,
      value: expectTag(parts.at(-1), TAG.octetString).body,
    }
  })
}
