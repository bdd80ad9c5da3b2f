import { toHex, type Bytes } from '../../protocol/bytes.ts'

/** AMD's signature algorithm: RSASSA-PSS, SHA-384, MGF1 with SHA-384, 48 bytes of salt, trailer 1. */
const SALT_BYTES = 48

const HASH_AND_MASK =
  'a00f300d06096086480165030402020500' + // [0] SHA-384
  'a11c301a06092a864886f70d010108300d06096086480165030402020500' + // [1] MGF1 with SHA-384
  'a203020130' // [2] 48

/**
 * The only two accepted AlgorithmIdentifiers, byte for byte: AMD's root and authorities state the default trailer
 * explicitly, newer chip certificates omit it.
 */
const ACCEPTED = new Set([
  `304606092a864886f70d01010a3039${HASH_AND_MASK}a303020101`,
  `304106092a864886f70d01010a3034${HASH_AND_MASK}`,
])

/** What is wrong with a signature of an AMD authority, or undefined. `spki` is the signer's key. */
export async function pssFault(
  { signatureAlgorithm, signature, signed }: SignedBytes,
  spki: Bytes,
): Promise<string | undefined> {
  if (!ACCEPTED.has(toHex(signatureAlgorithm))) {
    return 'not signed by RSASSA-PSS with SHA-384, MGF1 with SHA-384 and 48 bytes of salt'
  }
  try {
    const scheme = { name: 'RSA-PSS', hash: 'SHA-384' }
    const key = await crypto.subtle.importKey('spki', spki, scheme, false, ['verify'])
    const pss = { name: 'RSA-PSS', saltLength: SALT_BYTES }
    if (await crypto.subtle.verify(pss, key, signature, signed)) return undefined
    return 'the signature does not verify'
  } catch {
    return "the issuer's key is no RSA key"
  }
}

export interface SignedBytes {
  readonly signatureAlgorithm: Bytes
  readonly signature: Bytes
  readonly signed: Bytes
}
