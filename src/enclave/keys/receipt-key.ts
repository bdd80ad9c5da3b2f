import { generateKeyPair, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { jwkThumbprint } from '../../protocol/jwk.ts'
import type { PublicJwk } from '../../protocol/link.ts'

/**
 * A receipt key. Only threads of this process receive it, as the same object in memory: it is never written out, and
 * ends with the process.
 */
export interface ReceiptKeyParts {
  readonly privateKey: KeyObject
  readonly kid: string
  readonly jwk: PublicJwk
}

/** The key that signs receipts. It cannot be exported: this object only signs bytes. */
export interface ReceiptKey {
  /** The ES256 signature of the bytes in the format of JWS: 64 bytes, `r` and `s` (RFC 7518 section 3.4). */
  readonly sign: (data: Uint8Array) => Buffer
  /** RFC 7638 thumbprint of the public half. */
  readonly kid: string
  readonly jwk: PublicJwk
}

/** Makes a new ES256 receipt key. */
export async function makeReceiptKey(): Promise<ReceiptKey> {
  return receiptKeyOf(await generateReceiptKey())
}

export async function generateReceiptKey(): Promise<ReceiptKeyParts> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  const { x, y } = publicKey.export({ format: 'jwk' })
  if (x === undefined || y === undefined)
    throw new Error('internal error: an EC key without a point')
  const point = { kty: 'EC', crv: 'P-256', x, y } as const
  const kid = await jwkThumbprint(point)
  return { privateKey, kid, jwk: { ...point, kid, alg: 'ES256', use: 'sig' } }
}

export function receiptKeyOf({ privateKey, kid, jwk }: ReceiptKeyParts): ReceiptKey {
  return {
    // Synchronous, because a signature takes less time than the transfer to another thread and back. In DER, because
    // OpenSSL takes as long again to write `ieee-p1363`.
    sign: (data) => withoutDer(sign('sha256', data, privateKey)),
    kid,
    jwk,
  }
}

const INTEGER_BYTES = 32

/** `r` and `s` concatenated, from a DER SEQUENCE of two INTEGERs of at most 33 bytes each. */
function withoutDer(der: Buffer): Buffer {
  const plain = Buffer.alloc(2 * INTEGER_BYTES)
  // Tag and length of the sequence come first, then tag and length of each integer.
  const endOfR = 4 + der.readUInt8(3)
  placeInteger(der.subarray(4, endOfR), plain.subarray(0, INTEGER_BYTES))
  placeInteger(der.subarray(endOfR + 2), plain.subarray(INTEGER_BYTES))
  return plain
}

/** DER drops leading zeros, and adds one before an integer that would otherwise be negative. */
function placeInteger(integer: Buffer, place: Buffer): void {
  const digits = integer.subarray(-INTEGER_BYTES)
  place.set(digits, INTEGER_BYTES - digits.length)
}
