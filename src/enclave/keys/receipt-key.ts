import type { PublicJwk } from '../../protocol/link.ts'
import { jwkThumbprint } from '../../protocol/jwk.ts'

/** The key that signs receipts. It is made in memory, cannot be exported, and ends with the process. */
export interface ReceiptKey {
  readonly privateKey: CryptoKey
  /** RFC 7638 thumbprint of the public half. */
  readonly kid: string
  readonly jwk: PublicJwk
}

/** Makes a new ES256 receipt key. */
export async function makeReceiptKey(): Promise<ReceiptKey> {
  const scheme = { name: 'ECDSA', namedCurve: 'P-256' }
  const pair = await crypto.subtle.generateKey(scheme, false, ['sign', 'verify'])
  const { x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  if (x === undefined || y === undefined)
    throw new Error('internal error: an EC key without a point')
  const point = { kty: 'EC', crv: 'P-256', x, y } as const
  const kid = await jwkThumbprint(point)
  return { privateKey: pair.privateKey, kid, jwk: { ...point, kid, alg: 'ES256', use: 'sig' } }
}
