import { z } from 'zod'
import { es256JwkSchema, jwkThumbprint, type EcPoint } from '../../protocol/jwk.ts'

/** A key that signs release documents: the release root, or one the root delegates to. */
export interface SigningKey {
  readonly privateKey: CryptoKey
  readonly publicJwk: PublicSigningJwk
  /** RFC 7638 thumbprint. */
  readonly kid: string
}

export interface PublicSigningJwk extends EcPoint {
  readonly crv: 'P-256'
  readonly kid: string
  readonly alg: 'ES256'
  readonly use: 'sig'
}

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256' } as const

/** Generates a key. Only an extractable one can be stored in a file. */
export async function makeSigningKey({
  extractable,
}: {
  extractable: boolean
}): Promise<SigningKey> {
  const pair = await crypto.subtle.generateKey(SCHEME, extractable, ['sign', 'verify'])
  const publicJwk = await describePublicKey(await crypto.subtle.exportKey('jwk', pair.publicKey))
  return { privateKey: pair.privateKey, publicJwk, kid: publicJwk.kid }
}

/**
 * Imports a private JWK as a non-extractable signing key.
 * @throws Error when it is not a P-256 key
 */
export async function importSigningKey(jwk: unknown): Promise<SigningKey> {
  const publicJwk = await describePublicKey(jwk)
  const { kty, crv, x, y } = publicJwk
  const parts = { kty, crv, x, y, ...privatePartSchema.parse(jwk) }
  const privateKey = await crypto.subtle.importKey('jwk', parts, SCHEME, false, ['sign'])
  return { privateKey, publicJwk, kid: publicJwk.kid }
}

/**
 * Describes a public key in the form that release documents and key files use.
 * @throws Error when it is not a P-256 key
 */
export async function describePublicKey(jwk: unknown): Promise<PublicSigningJwk> {
  const { kty, crv, x, y } = pointSchema.parse(jwk)
  const kid = await jwkThumbprint({ kty, crv, x, y })
  return { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' }
}

/** A private JWK has these members, too. */
const pointSchema = es256JwkSchema.pick({ kty: true, crv: true, x: true, y: true })

const privatePartSchema = z.object({ d: z.string() })
