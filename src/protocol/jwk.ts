import * as z from 'zod'
import { isBase64Url32, toBase64Url, utf8 } from './bytes.ts'
import { canonicalJson } from './canonical-json.ts'
import { sha256 } from './digest.ts'

/** A coordinate of a P-256 point: exactly 32 bytes in canonical base64url (RFC 7518 section 6.2.1). */
const coordinate = z.string().refine(isBase64Url32, 'not 32 bytes in base64url')

/** The public half of an ES256 key. Private members are refused: a public document must not carry them. */
export const es256JwkSchema = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: coordinate,
  y: coordinate,
  kid: z.string().optional(),
  alg: z.literal('ES256').optional(),
  use: z.literal('sig').optional(),
  d: z.undefined().optional(),
})

export type Es256Jwk = z.output<typeof es256JwkSchema>

/** Only the members that define the key. */
export interface EcPoint {
  readonly kty: 'EC'
  readonly crv: string
  readonly x: string
  readonly y: string
}

/** RFC 7638 thumbprint of an EC public key: base64url of SHA-256. Every key of this project has it as its `kid`. */
export async function jwkThumbprint({ kty, crv, x, y }: EcPoint): Promise<string> {
  return toBase64Url(await sha256(utf8(canonicalJson({ crv, kty, x, y }))))
}
