import * as z from 'zod'
import { fromBase64Url, toBase64Url, utf8, type Bytes } from './bytes.ts'
import type { EcPoint } from './jwk.ts'
import { MalformedEvidence } from './malformed-evidence.ts'
import { parseStrictJson } from './strict-json.ts'

/**
 * Compact JWS (RFC 7515 section 7.1), strictly: three segments in canonical base64url, no repeated member in the
 * header. The reader chooses the algorithm, never the header.
 */

/** Larger documents are refused unread. */
const MAX_JWS_CHARS = 1_048_576

const headerSchema = z.looseObject({
  alg: z.string().optional(),
  kid: z.string().optional(),
  typ: z.string().optional(),
})

export type JwsHeader = z.output<typeof headerSchema>

export interface CompactJws {
  readonly header: JwsHeader
  readonly payload: Bytes
  readonly signature: Bytes
  /** The bytes that are signed: the first two segments and the dot between them. */
  readonly signingInput: Bytes
}

const ALGORITHMS = {
  ES256: { curve: 'P-256', hash: 'SHA-256', signatureBytes: 64 },
  ES384: { curve: 'P-384', hash: 'SHA-384', signatureBytes: 96 },
} as const

export type JwsAlgorithm = keyof typeof ALGORITHMS

/**
 * Splits a compact JWS and parses its header; the signature is not verified.
 * @throws MalformedEvidence when it is too large, does not have three canonical base64url segments, or its header
 *   cannot be parsed
 */
export function parseCompactJws(text: string, document: string): CompactJws {
  if (text.length > MAX_JWS_CHARS) throw new MalformedEvidence(document, 'JWS too large')
  const [header, payload, signature, ...rest] = text.split('.')
  if (
    header === undefined ||
    payload === undefined ||
    signature === undefined ||
    rest.length !== 0
  ) {
    throw new MalformedEvidence(document, 'a compact JWS has three segments')
  }
  const parsed = headerSchema.safeParse(parseStrictJson(decode(header, document), document))
  if (!parsed.success) throw new MalformedEvidence(document, 'JWS header of the wrong form')
  return {
    header: parsed.data,
    payload: decode(payload, document),
    signature: decode(signature, document),
    signingInput: utf8(`${header}.${payload}`),
  }
}

function decode(segment: string, document: string): Bytes {
  try {
    return fromBase64Url(segment)
  } catch {
    throw new MalformedEvidence(document, 'JWS segment not canonical base64url')
  }
}

/**
 * True when the signature over the JWS verifies under the key with exactly this algorithm. A signature of
 * another length (DER, for instance) and a key that is not a point on the curve are false, not errors.
 */
export async function verifyJwsSignature(
  jws: CompactJws,
  { kty, crv, x, y }: EcPoint,
  algorithm: JwsAlgorithm,
): Promise<boolean> {
  const { curve, hash, signatureBytes } = ALGORITHMS[algorithm]
  if (jws.signature.length !== signatureBytes || crv !== curve) return false
  try {
    const scheme = { name: 'ECDSA', namedCurve: curve }
    const key = await crypto.subtle.importKey('jwk', { kty, crv, x, y }, scheme, false, ['verify'])
    return await crypto.subtle.verify({ name: 'ECDSA', hash }, key, jws.signature, jws.signingInput)
  } catch {
    return false
  }
}

/** Signs a payload as ES256 compact JWS; the header is exactly `alg`, `kid` and `typ`. */
export async function signCompactJws(
  payload: Bytes,
  { kid, typ, privateKey }: { kid: string; typ: string; privateKey: CryptoKey },
): Promise<string> {
  const header = toBase64Url(utf8(JSON.stringify({ alg: 'ES256', kid, typ })))
  const signingInput = `${header}.${toBase64Url(payload)}`
  const scheme = { name: 'ECDSA', hash: 'SHA-256' }
  const signature = await crypto.subtle.sign(scheme, privateKey, utf8(signingInput))
  return `${signingInput}.${toBase64Url(new Uint8Array(signature))}`
}
