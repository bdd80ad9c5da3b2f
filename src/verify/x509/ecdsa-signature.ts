import type { Bytes } from '../../protocol/bytes.ts'
import { expectTag, readChildren, readDer, TAG, malformed } from './der.ts'

/** The curves of vendors' certificates, and the hash that each is used with. */
const CURVES = {
  'P-256': { bytes: 32, hash: 'SHA-256' },
  'P-384': { bytes: 48, hash: 'SHA-384' },
} as const

/** Verifies an ECDSA signature in DER, as in X.509 structures. `spki` is the signer's key. Never rejects. */
export async function verifyEcdsaSignature(
  { signed, signature }: { readonly signed: Bytes; readonly signature: Bytes },
  spki: Bytes,
  namedCurve: keyof typeof CURVES,
): Promise<boolean> {
  const { bytes, hash } = CURVES[namedCurve]
  try {
    const scheme = { name: 'ECDSA', namedCurve }
    const key = await crypto.subtle.importKey('spki', spki, scheme, false, ['verify'])
    const raw = fixedWidth(signature, bytes)
    return await crypto.subtle.verify({ name: 'ECDSA', hash }, key, raw, signed)
  } catch {
    return false
  }
}

/** Converts a SEQUENCE of two INTEGERs to r and s of fixed width, the form of Web Cryptography (IEEE P1363). */
function fixedWidth(signature: Bytes, width: number): Bytes {
  const parts = readChildren(readDer(signature, TAG.sequence))
  if (parts.length !== 2) throw malformed('signature of another form')
  const raw = new Uint8Array(2 * width)
  for (const [index, part] of parts.entries()) {
    const { body } = expectTag(part, TAG.integer)
    const digits = body[0] === 0 ? body.subarray(1) : body
    if (digits.length > width) throw malformed('signature of another curve')
    raw.set(digits, (index + 1) * width - digits.length)
  }
  return raw
}
