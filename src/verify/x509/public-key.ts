import type { Bytes } from '../../protocol/bytes.ts'
import {
  expectTag,
  readBitString,
  readChildren,
  readDer,
  readObjectId,
  readSmallInteger,
  TAG,
} from './der.ts'

const RSA = '1.2.840.113549.1.1.1'
const EC = '1.2.840.10045.2.1'
const P384 = '1.3.132.0.34'

/** An uncompressed point on P-384. */
const P384_POINT_BYTES = 97

/**
 * The kind of a SubjectPublicKeyInfo: `RSA-<bits>` (public exponent 65537 only), `P-384`, or `other`.
 * @throws MalformedEvidence when the input is malformed
 */
export function keyKind(spki: Bytes): string {
  const [algorithm, key] = readChildren(readDer(spki, TAG.sequence))
  const [id, parameters] = readChildren(expectTag(algorithm, TAG.sequence))
  const bits = readBitString(key)
  const kind = readObjectId(id)
  if (kind === EC && parameters?.tag === TAG.objectId && readObjectId(parameters) === P384) {
    return bits.length === P384_POINT_BYTES && bits[0] === 0x04 ? 'P-384' : 'other'
  }
  return kind === RSA ? rsaKind(bits) : 'other'
}

function rsaKind(key: Bytes): string {
  const [modulus, exponent] = readChildren(readDer(key, TAG.sequence))
  const { body } = expectTag(modulus, TAG.integer)
  const fullBytes = body.length - 1
  const full = body[0] === 0 && (body[1] ?? 0) > 0x7f
  return full && readSmallInteger(exponent) === 65_537 ? `RSA-${8 * fullBytes}` : 'other'
}
